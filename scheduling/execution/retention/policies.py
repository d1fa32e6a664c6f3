"""Policies: the retention policy of each schedule, and the executions that retention keeps at any age."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from operator import or_

from django.db.models import Count, Min, OuterRef, Q, Subquery

from scheduling.core.retention import KEEP_ALL, RetentionInvalid, RetentionPolicy
from scheduling.execution.retention.windows import Row
from scheduling.logs import get_logger
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.health import OWN_RUNS
from scheduling.models.own_retention import RETENTION_COLUMNS

log = get_logger(__name__)

SCHEDULES_PER_QUERY = 500

HAS_OWN = reduce(or_, (Q(**{f"{column}__isnull": False}) for column in RETENTION_COLUMNS))
"""The condition of schedules with own values."""


class Policies:
    """The policies of one pass. They are read once, at the beginning.

    Args:
        base: the policy of the settings.
    """

    def __init__(self, base: RetentionPolicy) -> None:
        self.base = base
        self.own: dict[int, RetentionPolicy] = {}
        """The policies of schedules with own values. A schedule with an unusable value keeps all its executions."""
        self._last: dict[int, int] = {}
        for keys in schedule_keys(HAS_OWN):
            rows = Scheduler.objects.filter(pk__in=keys).values_list("pk", *RETENTION_COLUMNS)
            for pk, *values in rows:
                self.own[pk] = self._policy(pk, values)

    def _policy(self, pk: int, values: list[object]) -> RetentionPolicy:
        try:
            return self.base.with_own(dict(zip(RETENTION_COLUMNS.values(), values, strict=True)))
        except RetentionInvalid as error:
            log.warning("Nothing of schedule %s is removed, because its own retention cannot be used: %s", pk, error)
            return KEEP_ALL

    def of(self, row: Row) -> RetentionPolicy:
        """The policy of an execution."""
        return self.base if row.scheduler_id is None else self.own.get(row.scheduler_id, self.base)

    @property
    def has_failed_days(self) -> bool:
        """Whether any policy removes failures."""
        return any(policy.failed_days is not None for policy in (self.base, *self.own.values()))

    def last_runs(self, rows: Iterable[Row]) -> set[int]:
        """Which of these executions are the last result of a schedule with a cron expression.

        They are kept at any age: the list of schedules reads the last result and the health from them. A schedule that
        runs once a year would else be shown as one that never ran. A spent one-time schedule does not run again, so
        its last execution is not kept.
        """
        rows = list(rows)
        missing = {row.scheduler_id for row in rows if isinstance(row.scheduler_id, int)} - self._last.keys()
        newest = OWN_RUNS.filter(scheduler=OuterRef("pk")).values("pk")[:1]
        for keys in _chunks(sorted(missing)):
            cron = Scheduler.objects.filter(pk__in=keys, date_time__isnull=True).order_by()
            found = dict(cron.annotate(last=Subquery(newest)).values_list("pk", "last"))
            self._last |= {pk: found.get(pk) or 0 for pk in keys}
        last = {self._last.get(row.scheduler_id, 0) for row in rows if row.scheduler_id is not None}
        return {row.pk for row in rows if row.pk in last}


def edge_of(scheduler: int, count: int) -> int | None:
    """The key of the oldest of the newest `count` executions of a schedule. All executions below it are superfluous.

    The query reads at most `count` entries of the index (scheduler, -id). None if the schedule has fewer executions.
    """
    newest = SchedulerExecution.objects.filter(scheduler=scheduler).order_by("-pk").values("pk")[:count]
    found = newest.aggregate(edge=Min("pk"), number=Count("pk"))
    edge: int | None = found["edge"]
    return edge if found["number"] >= count else None


def schedule_keys(which: Q) -> Iterator[list[int]]:
    """The keys of the schedules that match, in order, at most `SCHEDULES_PER_QUERY` at once."""
    cursor = 0
    while True:
        rows = Scheduler.objects.filter(which, pk__gt=cursor).order_by("pk")
        keys = list(rows.values_list("pk", flat=True)[:SCHEDULES_PER_QUERY])
        if not keys:
            return
        yield keys
        cursor = keys[-1]


def _chunks(keys: Sequence[int]) -> Iterator[Sequence[int]]:
    return (keys[at : at + SCHEDULES_PER_QUERY] for at in range(0, len(keys), SCHEDULES_PER_QUERY))
