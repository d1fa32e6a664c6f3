"""Cancels a run. A handler that looks at `run.cancelled` gets time to end by itself before it is ended."""

from __future__ import annotations

import time
from contextlib import suppress

from scheduling.consumer.batch_calls import leave_out
from scheduling.consumer.notices import CANCEL, notice
from scheduling.consumer.running import Running
from scheduling.consumer.slots import Slots
from scheduling.core.outcome import Cancelled

CANCEL_GRACE_SECONDS = 5.0
"""The time between the notice and SIGTERM, for a handler that has looked at `run.cancelled`."""


def cancel_run(slots: Slots, run: Running, by: str, now: float) -> None:
    """Tell the handler that its run is cancelled, and end the run.

    A batch is ended when each of its runs is cancelled.

    Args:
        by: the name of the user who has asked for it.
        now: the monotonic time.
    """
    if (batch := run.batch) is not None:
        if not batch.called:
            leave_out(slots, run, Cancelled(by))
            return
        if run not in batch.cancelled:
            run.output.note(
                "The run is cancelled. Its batch goes on; if the run fails, it is not retried.", time.time()
            )
        if not batch.cancel(run, by):
            return
        run = batch.leader
        by = batch.cancelled.get(run, by)
    verdict = Cancelled(by)
    if run.child is not None:
        with suppress(OSError):  # the child has ended just now
            run.child.send(notice(CANCEL, run.execution_id, run.delivery.message.attempt))
    if run.child is None or not run.watches_cancel:
        slots.end(run, verdict, now)
        return
    run.verdict, run.end_at = verdict, now + CANCEL_GRACE_SECONDS
    run.output.note(f"The run is cancelled; its handler has {CANCEL_GRACE_SECONDS:g} s to end.", time.time())
