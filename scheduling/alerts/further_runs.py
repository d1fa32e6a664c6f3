"""Looks further back at the runs of the few schedules whose newest runs do not say enough."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db.models import Count, Max, Min, OuterRef, Q, QuerySet, Subquery

from scheduling.alerts.memory import Memory
from scheduling.alerts.runs import NAMED, RECENT, SCHEDULES_PER_QUERY, Run, runs_by_key
from scheduling.core.chunks import chunks
from scheduling.core.lifecycle import State
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.last_runs import FAILURES

NEWEST_RUNS = 1_000
"""So many of the newest runs of a schedule are looked at. A schedule may have millions."""

EDGES_FOR = timedelta(minutes=10)
"""So long it is remembered where these runs begin."""

STATES = tuple(state.value for state in State)


class Row(NamedTuple):
    """Failures of a schedule in a row.

    Args:
        number: how many there are since the last success.
        last: the newest one; None if it cannot be read.
    """

    number: int
    last: Run | None


@dataclass
class FurtherRuns:
    """Reads the newest `NEWEST_RUNS` runs of schedules. Each query is for `SCHEDULES_PER_QUERY` schedules."""

    memory: Memory
    now: datetime

    def since(self, instants: Mapping[int, datetime]) -> dict[int, list[Run]]:
        """Runs of schedules that were due at an instant or later, or were skipped then, the oldest first.

        Of those with the same state and the same trigger, only the first and the last one are read.

        Args:
            instants: the instant for each schedule.
        """
        keys: set[int] = set()
        for some, edges in self._parts(instants):
            ranges = [Q(scheduler=pk, pk__gte=edges[pk]) & _since(instants[pk]) for pk in some]
            rows = _rows(ranges).filter(state__in=STATES).values("scheduler", "state", "trigger")
            for first, last in rows.annotate(first=Min("pk"), last=Max("pk")).values_list("first", "last"):
                keys |= {first, last}
        found: dict[int, list[Run]] = defaultdict(list)
        for run in sorted(runs_by_key(keys, RECENT).values(), key=lambda run: run.pk):
            if run.scheduler_id is not None:
                found[run.scheduler_id].append(run)
        return found

    def failures(self, schedules: Collection[int]) -> dict[int, Row]:
        """The failures since the last success of each schedule that has any. A discarded failure counts, too."""
        found: dict[int, Row] = {}
        for some, edges in self._parts(schedules):
            ranges = [Q(scheduler=pk, pk__gte=edges[pk]) for pk in some]
            ended = _rows(ranges).filter(state=State.SUCCEEDED.value).values("scheduler").annotate(last=Max("pk"))
            success = dict(ended.values_list("scheduler", "last"))
            later = [Q(scheduler=pk, pk__gte=max(edges[pk], success.get(pk, 0))) for pk in some]
            rows = _rows(later).filter(state__in=FAILURES).values("scheduler")
            counted = rows.annotate(number=Count("pk"), last=Max("pk")).values_list("scheduler", "number", "last")
            newest = {pk: (number, last) for pk, number, last in counted}
            runs = runs_by_key([last for _number, last in newest.values()], NAMED)
            found |= {pk: Row(number, runs.get(last)) for pk, (number, last) in newest.items()}
        return found

    def ranges(self, schedules: Collection[int]) -> Iterator[list[Q]]:
        """What is looked at: a condition for each schedule, in parts for one query each."""
        for some, edges in self._parts(schedules):
            yield [Q(scheduler=pk, pk__gte=edges[pk]) for pk in some]

    def _parts(self, schedules: Collection[int]) -> Iterator[tuple[Sequence[int], Mapping[int, int]]]:
        """The schedules in parts, without those that do not exist, and the key of the oldest run that is looked at."""
        for keys in chunks(sorted(schedules), SCHEDULES_PER_QUERY):
            known = {pk: self.memory.known(("edge", pk), self.now, EDGES_FOR) for pk in keys}
            missing = [pk for pk, edge in known.items() if edge is None]
            for pk, edge in _edges(missing).items() if missing else ():
                known[pk] = edge
                self.memory.keep(("edge", pk), self.now, edge)
            if edges := {pk: edge for pk, edge in known.items() if edge is not None}:
                yield list(edges), edges


def _since(instant: datetime) -> Q:
    return Q(scheduled_at__gte=instant) | Q(state=State.SKIPPED.value, executed_at__gte=instant)


def _rows(ranges: Sequence[Q]) -> QuerySet[SchedulerExecution]:
    return SchedulerExecution.objects.filter(Q(*ranges, _connector=Q.OR)).order_by()


def _edges(schedules: Sequence[int]) -> dict[int, int]:
    newest = SchedulerExecution.objects.filter(scheduler=OuterRef("pk")).order_by("-pk").values("pk")
    rows = Scheduler.objects.filter(pk__in=schedules).order_by()
    found = rows.annotate(edge=Subquery(newest[NEWEST_RUNS - 1 : NEWEST_RUNS])).values_list("pk", "edge")
    return {pk: edge or 0 for pk, edge in found}
