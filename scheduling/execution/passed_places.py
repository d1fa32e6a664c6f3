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
from scheduling.execution.given_places import remove_places
from scheduling.execution.key_facts import GRANTED, WAITS, facts_of, first_waiting
from scheduling.execution.places import Limited, LimitedAttempt, starts_of
from scheduling.models import LimitKey, LimitPlace, SchedulerExecution
from scheduling.processes.set_aside import read_rows


class Passed(NamedTuple):
    """What `pass_places` has done.

    Args:
        rows: the executions that were given a place. They start in this transaction.
        freed: the attempts whose place was freed. The places of the others are freed after the transaction.
        left: the limits that may have a free place for further runs. It is given after the transaction.
    """

    rows: list[SchedulerExecution]
    freed: list[LimitedAttempt]
    left: dict[int, Limited]


def pass_places(ended: Sequence[LimitedAttempt], queues: Collection[str], most: int, now: datetime) -> Passed:
    """Free the places of attempts that have ended, and give these places to the runs that have waited longest.

    Args:
        ended: each with its place.
        queues: the work queues from which runs may be taken.
        most: how many runs may start.
    """
    limits = {attempt.place.limit: attempt.limited for attempt in ended if attempt.place is not None}
    keys = LimitKey.objects.filter(pk__in=list(limits)).order_by("pk")
    locked = {row.pk: row for row in keys.select_for_update(skip_locked=True)}
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
    if rows:
        places = LimitPlace.objects.filter(pk__in=[row.pk for row in rows], state=WAITS)
        places.update(state=GRANTED, since=now)
    given = Counter(first.pop(row.pk) for row in rows)
    for pk, count in given.items():
        rules, row = limits[pk].rules, locked[pk]
        if pk in left and not rules.room(facts[pk].taken + count, starts_of(row), now, facts[pk].granted + count):
            del left[pk]
    left |= {pk: limits[pk] for pk in first.values()}  # these cannot start here
    return Passed(rows, freed, left)


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
