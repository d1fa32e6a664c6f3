"""Lets batches have their children, and leaves out runs that are not to be called."""

from __future__ import annotations

from scheduling.consumer.run_output import share_output
from scheduling.consumer.running import Running
from scheduling.consumer.slots import Slots
from scheduling.core.outcome import Outcome


def launch_batches(slots: Slots, now: float, draining: bool) -> None:
    """Call the batches that are full or have waited for long enough; each of them if the consumer stops.

    Args:
        now: the monotonic time.
    """
    for batch in slots.gathering.due(now, None if draining else slots.count - len(slots.running)):
        leader = batch.close()
        share_output(batch, slots.output_limit)
        slots.launch(leader)


def next_call(slots: Slots, *, takes: bool) -> float | None:
    """The monotonic time at which a batch is to be called or filled; None if none gathers, or if none has a slot.

    A batch may gather without a slot: a message may name another schedule than its row, so that its run does not join
    the batch for which it was taken.

    Args:
        takes: whether the consumer takes further runs.
    """
    return slots.gathering.next_clock(takes=takes) if slots.count > len(slots.running) else None


def leave_out(slots: Slots, run: Running, verdict: Outcome) -> None:
    """End a run whose batch is not called yet."""
    slots.gathering.remove(run)
    run.outcome = run.verdict = verdict
    slots.over.append(run)
