"""Decides by when an occurrence must have started, and says where it waited if it has not."""

from __future__ import annotations

from datetime import datetime, timedelta

from scheduling.core import skip_sentences as say
from scheduling.core.lifecycle import State

SECONDS = (1, 366 * 86_400)
"""The lowest and the highest number of seconds within which a run may have to start."""

FOR_A_PRODUCER = say.FOR_A_PRODUCER.format()
REASON_CHARS = 300


def start_by(due_at: datetime, within_seconds: object) -> datetime | None:
    """The instant by which an occurrence must have started; None if it may start at any time.

    Args:
        due_at: when it was due.
        within_seconds: the value of the schedule. A value that plain SQL has written and that is no number of seconds
            is no deadline.
    """
    if type(within_seconds) is not int or not SECONDS[0] <= within_seconds <= SECONDS[1]:
        return None
    return due_at + timedelta(seconds=within_seconds)


def where_it_waits(state: str, queue: str, reason: str) -> str:
    """What an execution waits for, to follow "It waited 5 minutes".

    Args:
        queue: the label of its queue.
        reason: the sentence of its row that says why it waits; empty if it waits for a free consumer.
    """
    if state == State.BLOCKED.value:
        return say.FOR_ITS_TURN.format(reason=reason[:REASON_CHARS])
    return (say.IN_QUEUE if reason else say.FOR_A_CONSUMER).format(queue=queue, reason=reason[:REASON_CHARS])
