"""Passes the places of runs that have ended on to runs that wait, in the transaction that settles them.

So the next run of a key starts in the consumer in which the last one has ended, without a message that lines up in a
queue again. This transaction waits for no lock, because it holds rows already: what another process has locked is
passed on after the transaction (`execution.given_places`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import QuerySet

from scheduling.core.lifecycle import WAITING
from scheduling.execution.key_facts import HELD, facts_of, first_waiting
from scheduling.execution.key_rows import KeyRow, lock_keys, note_starts, starts_of, store_used
from scheduling.execution.message_rows import MessageRow
from scheduling.execution.place_rows import Place, remove_places, store_places
from scheduling.execution.places import Limited, LimitedAttempt
from scheduling.models import SchedulerExecution
from scheduling.models.prepared_over import PreparedOver
from scheduling.processes.database import is_away
from scheduling.processes.set_aside import read_rows

NAMES = MessageRow._fields


class WaitingMessage(NamedTuple):
    """An execution that waits for a place, with the columns of its message."""

    row: MessageRow
    queue: str


class Passed(NamedTuple):
    """What `pass_places` has done.

    Args:
        rows: the executions that can have a place. Those that start in this transaction take it (`take_passed`).
        keys: maps each of them to the row of its key, which is locked until the end of the transaction.
        freed: the attempts whose place was freed. The places of the others are freed after the transaction.
        left: the limits that may have a free place for further runs. It is given after the transaction.
    """

    rows: list[WaitingMessage]
    keys: dict[int, KeyRow]
    freed: list[LimitedAttempt]
    left: dict[int, Limited]


def pass_places(ended: Sequence[LimitedAttempt], queues: Collection[str], most: int, now: datetime) -> Passed:
    """Free the places of attempts that have ended, and find the runs that have waited longest for these places.

    Args:
        ended: each with its place.
        queues: the work queues from which runs may be taken.
        most: how many runs may start.
    """
    limits = {attempt.place.limit: attempt.limited for attempt in ended if attempt.place is not None}
    locked = lock_keys(limits)
    freed = [one for one in ended if one.place is not None and one.place.limit in locked]
    remove_places((one.pk, one.attempt) for one in freed)
    left = {pk: limited for pk, limited in limits.items() if pk not in locked}
    facts, first = facts_of(locked), dict[int, int]()
    for pk, row in locked.items():
        room = limits[pk].rules.room(facts[pk].taken, starts_of(row), now, facts[pk].granted)
        asked = min(room, most - len(first))
        found = first_waiting(pk, facts[pk], asked)
        first |= dict.fromkeys(found, pk)
        if facts[pk].first is not None and room and len(found) == asked:
            left[pk] = limits[pk]  # more runs may wait than can start here
    rows = _lock(first, queues, now)
    own = {one.row.id: locked[first.pop(one.row.id)] for one in rows}
    given = Counter(key.pk for key in own.values())
    for pk, count in given.items():
        rules, row = limits[pk].rules, locked[pk]
        if pk in left and not rules.room(facts[pk].taken + count, starts_of(row), now, facts[pk].granted + count):
            del left[pk]
    left |= {pk: limits[pk] for pk in first.values()}  # these cannot start here
    return Passed(rows, own, freed, left)


def take_passed(starts: Mapping[int, LimitedAttempt], keys: Mapping[int, KeyRow], now: datetime) -> None:
    """Take the places that were passed on. Call it in the transaction of `pass_places`, which has locked the keys.

    Args:
        starts: maps executions to the attempts that start.
        keys: maps executions to the rows of their keys.
    """
    if not starts:
        return
    used = {keys[pk].pk: keys[pk] for pk, start in starts.items() if note_starts(keys[pk], start.limited.rules, now)}
    store_used(used.values())
    store_places({pk: Place(keys[pk].pk, HELD, start.attempt) for pk, start in starts.items()}, now)
    # A run that starts after a long wait has the full time for code that knows its params (`core.deferral`).
    SchedulerExecution.objects.filter(pk__in=list(starts)).update(deferred_at=None, reason="")


def _lock(keys: Collection[int], queues: Collection[str], now: datetime) -> list[WaitingMessage]:
    """The executions among these that wait for a place and that no other process has locked."""
    if not keys:
        return []
    lists = sorted(keys), sorted(queues)
    try:
        found = [WaitingMessage(MessageRow(*values), queue) for *values, queue in _LOCKED.rows(*lists)]
    except Exception as error:
        if is_away(error):
            raise
        # One of them cannot be read. `read_rows` sets it aside.
        rows = read_rows(_waiting(*lists), now)
        found = [
            WaitingMessage(MessageRow(*[getattr(row, name) for name in MessageRow._fields]), row.queue) for row in rows
        ]
    return sorted(found, key=lambda one: one.row.id)


def _waiting(keys: Sequence[int], queues: Sequence[str]) -> QuerySet[SchedulerExecution]:
    rows = SchedulerExecution.objects.in_state(*WAITING).filter(
        pk__in=keys, queue__in=queues, deferred_at__isnull=False
    )
    return rows.select_for_update(skip_locked=True)


def _waiting_messages(keys: Sequence[int], queues: Sequence[str]) -> QuerySet[SchedulerExecution, Any]:
    return _waiting(keys, queues).values_list(*NAMES, "queue")


_LOCKED = PreparedOver(_waiting_messages, int, str)
