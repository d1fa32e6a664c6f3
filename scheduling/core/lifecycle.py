"""The states of an execution and the moves that are allowed between them (docs/lifecycle.md)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum


class State(StrEnum):
    """The states of an execution."""

    BLOCKED = "blocked"
    """It may not start before another execution has ended, or before the predecessor of its schedule has succeeded. No
    message and no statement can start it."""
    CLAIMED = "claimed"
    QUEUED = "queued"
    RUNNING = "running"
    RETRYING = "retrying"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DISCARDED = "discarded"
    SKIPPED = "skipped"


class Trigger(StrEnum):
    """What caused an execution."""

    CRON = "cron"
    DATE = "date"
    MANUAL = "manual"
    MESSAGE = "message"
    CODE = "code"
    BACKFILL = "backfill"


OCCURRENCES = (Trigger.CRON.value, Trigger.DATE.value)
"""The triggers of executions that stand for due instants. Others were asked for."""

MOVES: dict[State, frozenset[State]] = {
    # A blocked execution may not start yet. It is released, replaced by a newer one, or expires; what it waits for may
    # not come in time; or its row cannot be used.
    State.BLOCKED: frozenset({State.CLAIMED, State.QUEUED, State.SKIPPED, State.CANCELLED, State.FAILED}),
    # A waiting execution moves to FAILED if the broker gives up delivering its message at the delivery limit.
    # It moves to SKIPPED if it has not started by its start deadline.
    State.CLAIMED: frozenset({State.QUEUED, State.RUNNING, State.CANCELLED, State.FAILED, State.SKIPPED}),
    State.QUEUED: frozenset({State.RUNNING, State.CANCELLED, State.CLAIMED, State.FAILED, State.SKIPPED}),
    State.RUNNING: frozenset(
        {State.SUCCEEDED, State.FAILED, State.RETRYING, State.CANCELLED, State.QUEUED, State.CLAIMED}
        | {State.SKIPPED}  # the handler has been asked and has nothing to do (`when`)
    ),
    State.RETRYING: frozenset({State.QUEUED, State.RUNNING, State.CANCELLED, State.CLAIMED, State.FAILED}),
    State.FAILED: frozenset({State.CLAIMED, State.QUEUED, State.DISCARDED}),
    State.SUCCEEDED: frozenset(),
    State.CANCELLED: frozenset(),
    State.DISCARDED: frozenset(),
    State.SKIPPED: frozenset(),
}
"""Maps each state to the states that may follow it. Any other move is a defect of the software."""

WAITING = frozenset({State.CLAIMED, State.QUEUED, State.RETRYING})
"""The states in which the next attempt may start. CLAIMED is one of these states, because a message may reach a
consumer before the broker's confirm reaches the producer."""

LET_IN = WAITING | {State.RUNNING}
"""The states of an execution that may start, or has started, and is not over."""

OPEN_STATES = LET_IN | {State.BLOCKED}
"""The states of an open execution: it waits, runs, or waits for a retry. An operator can cancel it."""

CANCELLED_AT_ONCE = WAITING | {State.BLOCKED}
"""The states in which a cancel ends an execution at once, because no process works on it."""

ENDED = frozenset({State.SUCCEEDED, State.CANCELLED, State.DISCARDED, State.SKIPPED})
"""The final states. Retention may remove executions in these states. FAILED is not final, because a failed execution
waits for an operator. Retention discards a failure before it removes it."""


def check_move(origins: Iterable[State], to: State) -> None:
    """Refuse a move that `MOVES` does not allow.

    Raises:
        ValueError: the move is not allowed from one of the `origins`.
    """
    for origin in origins:
        if to not in MOVES[origin]:
            raise ValueError(f"An execution never moves from {origin} to {to}.")


CLAIM_GRACE = timedelta(seconds=10)
"""How long a publish may take before a sweep publishes the execution again."""

RETRY_GRACE = timedelta(seconds=10)
"""How late a retry may be before a sweep publishes the retry again, if the broker has not confirmed the message."""

CONFIRMED_GRACE = timedelta(seconds=30)
"""How late a retry may be before a sweep publishes the retry again, if the broker has confirmed the message. This time
is longer than RETRY_GRACE, because a confirmed message probably waits behind other messages. A second message would be
a copy."""


LONGEST_HEARTBEAT_SECONDS = 15.0
"""The longest time between two heartbeats, however long a lease is. So a dead process is soon seen."""

MISSED_HEARTBEATS = 2.5
"""A process is silent when two heartbeats did not come. A heartbeat may be late by half of the time between two."""


def heartbeat_seconds(lease_seconds: float) -> float:
    """Seconds between two heartbeats: at most a third of a lease, so that a lease survives one missed heartbeat."""
    return min(lease_seconds / 3, LONGEST_HEARTBEAT_SECONDS)


def silent_after(lease_seconds: float) -> timedelta:
    """How old the heartbeat of an alive process may be: 12.5 s with the default lease of 15 s, at most 37.5 s."""
    return timedelta(seconds=MISSED_HEARTBEATS * heartbeat_seconds(lease_seconds))
