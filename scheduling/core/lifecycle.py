"""The states of an execution and the moves that are allowed between them (docs/lifecycle.md)."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum


class State(StrEnum):
    """The states of an execution."""

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
    # A waiting execution fails when its message reaches the delivery limit, because the broker then stops delivering.
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
"""Maps each state to the states that an execution may move to from this state. Any other move is a defect."""

WAITING = frozenset({State.CLAIMED, State.QUEUED, State.RETRYING})
"""The states in which the next attempt may start. CLAIMED is among these states, because a message can
arrive before the broker's confirm."""

CANCELLABLE = WAITING | {State.RUNNING}

ENDED = frozenset({State.SUCCEEDED, State.CANCELLED, State.DISCARDED, State.SKIPPED})
"""The final states. Retention may remove the row. FAILED is not final, because the execution waits for an operator."""


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
"""How late a retry may be before a sweep publishes it again, if its message was never confirmed."""

CONFIRMED_GRACE = timedelta(seconds=30)
"""How late a retry may be before a sweep publishes it again, if its message was confirmed. CONFIRMED_GRACE is longer
than RETRY_GRACE, because the message probably waits behind other messages, and a second message would be a copy."""


_SILENT_SECONDS = 60.0


def silent_after(lease_seconds: float) -> timedelta:
    """How old the heartbeat of an alive process may be: 60 s, or `lease_seconds` if that is longer."""
    return timedelta(seconds=max(_SILENT_SECONDS, lease_seconds))
