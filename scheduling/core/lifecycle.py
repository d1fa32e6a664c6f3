"""The states of an execution and the moves that are allowed between them (docs/lifecycle.md)."""

from __future__ import annotations

from enum import StrEnum


class State(StrEnum):
    """Where an execution stands."""

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
    """What asked for an execution."""

    CRON = "cron"
    DATE = "date"
    MANUAL = "manual"
    MESSAGE = "message"


MOVES: dict[State, frozenset[State]] = {
    # What waits becomes failed when the broker itself gives up bringing its message (a delivery limit).
    State.CLAIMED: frozenset({State.QUEUED, State.RUNNING, State.CANCELLED, State.FAILED}),
    State.QUEUED: frozenset({State.RUNNING, State.CANCELLED, State.CLAIMED, State.FAILED}),
    State.RUNNING: frozenset(
        {State.SUCCEEDED, State.FAILED, State.RETRYING, State.CANCELLED, State.QUEUED, State.CLAIMED}
    ),
    State.RETRYING: frozenset({State.QUEUED, State.RUNNING, State.CANCELLED, State.CLAIMED, State.FAILED}),
    State.FAILED: frozenset({State.CLAIMED, State.QUEUED, State.DISCARDED}),
    State.SUCCEEDED: frozenset(),
    State.CANCELLED: frozenset(),
    State.DISCARDED: frozenset(),
    State.SKIPPED: frozenset(),
}
"""From each state, the states it may move to. A crossing that is not here is a defect."""

STARTABLE = frozenset({State.CLAIMED, State.QUEUED, State.RETRYING})
"""States from which an attempt may start: a message can be faster than its own confirm."""

CANCELLABLE = frozenset({State.CLAIMED, State.QUEUED, State.RETRYING, State.RUNNING})

ENDED = frozenset({State.SUCCEEDED, State.CANCELLED, State.DISCARDED, State.SKIPPED})
"""Nothing follows: retention may remove the row. FAILED is not here: it waits for an operator."""


def may(origin: State, to: State) -> bool:
    """Whether the move is allowed."""
    return to in MOVES[origin]
