"""Reads the runs that the rules look at. Each query is bounded, and uses an index."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from types import NoneType
from typing import Any, NamedTuple

from django.db.models import OuterRef, Q, QuerySet, Subquery

from scheduling.alerts.reading import readable
from scheduling.alerts.repeated import KeyedQuery, RepeatedQuery, as_they_are
from scheduling.core.chunks import chunks
from scheduling.core.lifecycle import OPEN_STATES, State
from scheduling.core.messages import is_in_calendar
from scheduling.core.text import visible_text
from scheduling.models import Attempt, Scheduler, SchedulerExecution

MOST_RUNS = 500
"""So many runs in one state are looked at."""

MOST_ENDED = 200
"""So many of the attempts that have just ended are looked at."""

FEW_ENDED = 20
"""So many of the newest attempts are looked at first. Only if half of them have just ended, more are."""

JUST_ENDED = timedelta(seconds=25)
"""So long ago an attempt may have ended that no evaluation has seen running. It is less than the time for which a
situation must be gone before its alert is over. Otherwise the alert would begin again."""

SCHEDULES_PER_QUERY = 200

ERROR_CHARS = 200
"""So many characters of the class of an error are shown."""


class Run(NamedTuple):
    """The columns of an execution that the rules need. Columns that were not read have the values below."""

    pk: int
    scheduler_id: int | None
    group_id: int | None
    state: str
    attempt: int = 0
    retry_base: int = 0
    target_name: str = ""
    trigger: str = ""
    fingerprint: str = ""
    scheduled_at: datetime | None = None
    started_at: datetime | None = None
    executed_at: datetime | None = None
    finished_at: datetime | None = None
    wake_at: datetime | None = None
    assigned_at: datetime | None = None

    @property
    def should_start_at(self) -> datetime | None:
        """When it was to start."""
        return self.assigned_at or self.scheduled_at

    @property
    def retries(self) -> int:
        """How many retries have started."""
        return max(0, self.attempt - self.retry_base - 1)


BASE = ("pk", "scheduler_id", "group_id", "state")
NAMED = (*BASE, "target_name")
RETRIED = (*NAMED, "attempt", "retry_base")
RECENT = (*RETRIED, "trigger", "scheduled_at", "started_at", "executed_at", "wake_at", "assigned_at")
FAILURES = (*NAMED, "fingerprint")
ALL = Run._fields

_ALLOWED = {
    **dict.fromkeys(("pk", "attempt", "retry_base"), (int,)),
    **dict.fromkeys(("scheduler_id", "group_id"), (int, NoneType)),
    **dict.fromkeys(("state", "target_name", "trigger", "fingerprint"), (str,)),
}
_BLANK = (0, None, None, "", *Run._field_defaults.values())
_PLACES = {name: (place, _ALLOWED.get(name)) for place, name in enumerate(Run._fields)}


def run_of(columns: Sequence[str], values: Sequence[Any]) -> Run | None:
    """The run with these values of these columns.

    Returns None if plain SQL has written values that cannot be used. An instant that is outside the calendar counts as
    unknown.
    """
    fixed = list(_BLANK)
    for column, value in zip(columns, values, strict=True):
        place, allowed = _PLACES[column]
        if allowed is None:
            fixed[place] = None if value is None else usable_instant(value)
        elif type(value) in allowed:
            fixed[place] = value
        else:
            return None
    return Run._make(fixed)


def usable_instant(value: object) -> datetime | None:
    """The instant; None if there is none, or if it cannot be used."""
    if not isinstance(value, datetime):
        return None
    instant = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    return instant if is_in_calendar(instant) else None


def runs_in(rows: QuerySet[SchedulerExecution], columns: Sequence[str], most: int) -> list[Run]:
    """The first of these runs that can be read, with these columns."""
    return _readable(run_of(columns, values) for values in readable(rows, most, columns))


def _readable(runs: Iterable[Run | None]) -> list[Run]:
    return [run for run in runs if run is not None]


def open_runs() -> list[Run]:
    """The oldest runs in each open state, by key, with the columns `RECENT`."""
    return sorted(_readable(_open_runs.rows()), key=lambda run: run.pk)


def newest_in(columns: tuple[str, ...], state: State) -> list[Run]:
    """The newest runs in this state, the newest first."""
    return _readable(_newest_in(columns, state).rows())


@cache
def _newest_in(columns: tuple[str, ...], state: State) -> RepeatedQuery[Run | None]:
    return RepeatedQuery(partial(_in_state, state, "-pk"), columns, MOST_RUNS, partial(run_of, columns))


def _in_state(state: State, order: str, _now: datetime) -> QuerySet[SchedulerExecution]:
    return SchedulerExecution.objects.in_state(state).order_by(order)


_oldest_in = [partial(_in_state, state, "pk") for state in sorted(OPEN_STATES)]
_open_runs = RepeatedQuery(_oldest_in[0], RECENT, MOST_RUNS, partial(run_of, RECENT), *_oldest_in[1:])


def newest_keys(schedules: Collection[int]) -> dict[int, int]:
    """The key of the newest run of each schedule that has one."""
    return {pk: key for pk, key in _newest_keys.rows(schedules) if key is not None}


def _with_newest() -> QuerySet[Scheduler]:
    newest = SchedulerExecution.objects.filter(scheduler=OuterRef("pk")).order_by("-pk").values("pk")
    return Scheduler.objects.order_by().annotate(newest=Subquery(newest[:1]))


_newest_keys = KeyedQuery(_with_newest, ("pk", "newest"), as_they_are)


def recent_runs(schedules: Collection[int], count: int) -> dict[int, list[Run]]:
    """The newest runs of each schedule, the oldest first. See `models.last_runs`, whose two queries these are."""
    found: dict[int, list[Run]] = {pk: [] for pk in schedules}
    newest = SchedulerExecution.objects.filter(scheduler=OuterRef("pk")).order_by("-pk").values("pk")
    for keys in chunks(sorted(schedules), SCHEDULES_PER_QUERY):
        edges = Scheduler.objects.filter(pk__in=keys).order_by().annotate(edge=Subquery(newest[count - 1 : count]))
        ranges = [Q(scheduler=pk, pk__gte=edge or 0) for pk, edge in edges.values_list("pk", "edge")]
        if ranges:
            rows = SchedulerExecution.objects.filter(Q(*ranges, _connector=Q.OR)).order_by()
            for run in sorted(runs_in(rows, RECENT, (count + 5) * len(keys)), key=lambda run: run.pk):
                if run.scheduler_id is not None:
                    found[run.scheduler_id].append(run)
    return {pk: runs[-count:] for pk, runs in found.items()}


def runs_by_key(keys: Collection[int], columns: tuple[str, ...]) -> dict[int, Run]:
    """The runs with these keys that exist and can be read."""
    return {run.pk: run for run in _readable(_keyed(columns).rows(keys))}


@cache
def _keyed(columns: tuple[str, ...]) -> KeyedQuery[Run | None]:
    return KeyedQuery(_executions, columns, partial(run_of, columns))


def reasons_of(runs: Collection[Run]) -> dict[int, str]:
    """Why these runs wait or were skipped, by their keys."""
    found = _reasons.rows([run.pk for run in runs])
    return {pk: reason for pk, reason in found if isinstance(reason, str)}


def _executions() -> QuerySet[SchedulerExecution]:
    return SchedulerExecution.objects.order_by()


_reasons = KeyedQuery(_executions, ("pk", "reason"), as_they_are)


def error_classes(runs: Collection[int]) -> dict[int, str]:
    """The classes of the errors of the failures with these keys, such as `app.errors.InvoiceError`."""
    found = _error_classes.rows(runs) if runs else []
    return {pk: visible_text(error, ERROR_CHARS) for pk, error in found if isinstance(error, str) and error}


_error_classes = KeyedQuery(_executions, ("pk", "error_class"), as_they_are)


class Ended(NamedTuple):
    """An attempt that has just ended.

    Args:
        seconds: how long it took.
    """

    run: Run
    seconds: float


def just_ended(now: datetime) -> list[Ended]:
    """The attempts that have ended within `JUST_ENDED`, and used up a retry or were the last ones."""
    ended = list[tuple[int, float]]()
    # A row is inserted when its attempt ends. So if most of the newest rows are older, all further ones are.
    for most in (FEW_ENDED, MOST_ENDED):
        ended = _durations_of(_newest_attempts(most).rows(), now)
        if len(ended) < most // 2:
            break
    seconds = dict(ended)
    if not seconds:
        return []
    return [Ended(run, seconds[pk]) for pk, run in runs_by_key(seconds, NAMED).items()]


@cache
def _newest_attempts(most: int) -> RepeatedQuery[tuple[Any, ...]]:
    rows = Attempt.objects.exclude(outcome__in=Attempt.UNCOUNTED).order_by("-pk")
    columns = ("pk", "execution_id", "started_at", "finished_at")
    return RepeatedQuery(lambda _now: rows, columns, most, as_they_are)


def _durations_of(attempts: Iterable[tuple[Any, ...]], now: datetime) -> list[tuple[int, float]]:
    """Those of the attempts that have just ended: the key of the execution, and the seconds that it took."""
    ended = list[tuple[int, float]]()
    for _pk, execution, started, finished in attempts:
        start, end = usable_instant(started), usable_instant(finished)
        if start is not None and end is not None and now - JUST_ENDED < end <= now:
            ended.append((execution, max(0.0, (end - start).total_seconds())))
    return ended
