"""Kills runs that this process no longer owns. Their results would be refused."""

from __future__ import annotations

import time

from scheduling.consumer.batch_calls import leave_out
from scheduling.consumer.running import Running
from scheduling.consumer.slots import Slots
from scheduling.core.outcome import Crashed


def kill_fenced(slots: Slots, run: Running) -> None:
    """Kill a run that another process owns. A batch is killed when this process needs none of its runs any more."""
    run.fenced = True
    if (batch := run.batch) is not None:
        if not batch.called:
            leave_out(slots, run, Crashed(lost=True))
            return
        if batch.is_needed:
            return
        run = batch.leader
    run.output.note("Another process owns this execution by now; this one is killed.", time.time())
    slots.end(run, Crashed(lost=True), time.monotonic(), grace=0.0)
