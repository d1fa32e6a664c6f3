"""Starts a replay of failures in the name of an actor: one runs first, and the others when it has succeeded."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from functools import partial

from django.db.models import QuerySet
from django.utils import timezone as clock

from scheduling.broker import BrokerError
from scheduling.core.deployment import Held
from scheduling.core.inbox_sentences import REQUEST_DIED
from scheduling.core.known_sentences import in_language
from scheduling.execution.own_broker import own_broker
from scheduling.inbox import replay
from scheduling.models import FailedExecution, Replay
from scheduling.operations.actor import Actor
from scheduling.operations.audit import record
from scheduling.operations.away import broker_away
from scheduling.operations.batches import in_chunks
from scheduling.operations.refused import Code, Refused

DIED = REQUEST_DIED.format()


def start_replay(actor: Actor, rows: QuerySet[FailedExecution], words: str, minutes: int, key: uuid.UUID) -> Replay:
    """Start a replay of these failures, or find the one that an earlier request with the same key has started.

    Args:
        words: the selection in words.
        minutes: over how many minutes the others are spread.

    Raises:
        Refused: HELD or BROKER_AWAY.
    """
    try:
        made, is_new = _started(actor, rows, words, minutes, key)
    except Held as held:
        raise Refused(Code.HELD, in_language(str(held))) from None
    except BrokerError as error:
        raise broker_away(error) from None
    if is_new:
        record(actor, [made], f"start: {made.total} executions, canary {made.canary}, {words}")
    return made


def _started(
    actor: Actor, rows: QuerySet[FailedExecution], words: str, minutes: int, key: uuid.UUID
) -> tuple[Replay, bool]:
    """The replay, and whether it is new. One whose request died before the first run was sent is begun anew."""
    start = partial(replay.start, broker=own_broker(), user=actor.user, selection=words, minutes=minutes)
    while (made := start(key, _pairs(rows))) is None:
        found = Replay.objects.get(key=key)
        if found.state == Replay.State.COLLECTING.value and replay.stop(found.pk, DIED, clock.now()):
            found.refresh_from_db()
        if found.reason != DIED:
            return found, False
        key = uuid.uuid5(key, "again")
    return made, True


def _pairs(rows: QuerySet[FailedExecution]) -> Iterator[list[tuple[int, int]]]:
    for chunk in in_chunks(rows.only("pk", "attempt")):
        yield [(row.pk, row.attempt) for row in chunk]
