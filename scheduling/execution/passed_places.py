"""Passes the places of runs that have ended on to runs that wait, in the transaction that settles them.

So the next run of a key starts in the consumer in which the last one has ended, without a message that lines up in a
queue again. This transaction waits for no lock, because it holds rows already: what another process has locked is
passed on after the transaction (`execution.given_places`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple

from scheduling.core.lifecycle import WAITING
from scheduling.execution.given_places import held_places, remove_places
from scheduling.execution.places import (
    GRANTED,
    WAITS,
    Limited,
    LimitedAttempt,
    note_starts,
    starts_of,
    store_used,
    taken_places,
    waiting_places,
)
from scheduling.models import LimitKey, LimitPlace, SchedulerExecution
from scheduling.processes.set_aside import read_rows


class Passed(NamedTuple):
    """What `pass_places` has done.

    Args:
        rows: the executions that were given a place. They start in this transaction.
        left: the limits that may have a free place for further runs. It is given after the transaction.
    """

    rows: list[SchedulerExecution]
    left: dict[int, Limited]


def pass_places(ended: Sequence[LimitedAttempt], queues: Collection[str], most: int, now: datetime) -> Passed:
    """Free the places of attempts that have ended, and give these places to the runs that have waited longest.

    Args:
        queues: the work queues from which runs may be taken.
        most: how many runs may start.
    """
    attempts = {attempt.pk: attempt for attempt in ended}
    held = held_places({attempt.pk: attempt.attempt for attempt in ended})
    limits = {place.limit_id: attempts[place.pk].limited for place in held}
    keys = LimitKey.objects.filter(pk__in=list(limits)).order_by("pk")
    locked = {row.pk: row for row in keys.select_for_update(skip_locked=True)}
    remove_places([place for place in held if place.limit_id in locked])
    left = {pk: limited for pk, limited in limits.items() if pk not in locked}
    taken, first = taken_places(locked), dict[int, int]()
    for pk, row in locked.items():
        room = limits[pk].rules.room(taken[pk], starts_of(row), now)
        asked = min(room, most - len(first))
        found = list(waiting_places(pk).values_list("pk", flat=True)[:asked]) if asked else []
        first |= dict.fromkeys(found, pk)
        if room and len(found) == asked:
            left[pk] = limits[pk]  # more runs may wait than can start here
    rows = _lock(first, queues, now)
    if rows:
        places = LimitPlace.objects.filter(pk__in=[row.pk for row in rows], state=WAITS)
        places.update(state=GRANTED, since=now)
    given = Counter(first.pop(row.pk) for row in rows)
    for pk, count in given.items():
        rules, row = limits[pk].rules, locked[pk]
        if note_starts(row, rules, count, now):
            store_used([row])
        if pk in left and not rules.room(taken[pk] + count, starts_of(row), now):
            del left[pk]
    left |= {pk: limits[pk] for pk in first.values()}  # these cannot start here
    return Passed(rows, left)


def _lock(keys: Collection[int], queues: Collection[str], now: datetime) -> list[SchedulerExecution]:
    """The executions among these that wait for a place and that no other process has locked."""
    if not keys:
        return []
    rows = SchedulerExecution.objects.in_state(*WAITING).filter(
        pk__in=list(keys), queue__in=list(queues), deferred_at__isnull=False
    )
    found = read_rows(rows.select_for_update(skip_locked=True), now)
    # A run that starts after a long wait has the full time for code that knows its params (`core.deferral`).
    SchedulerExecution.objects.filter(pk__in=[row.pk for row in found]).update(deferred_at=None, reason="")
    return sorted(found, key=lambda row: row.pk)
