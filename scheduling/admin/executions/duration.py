"""How long runs took: in SQL for filters and orders, and in words for the list and the page of a run.

No column holds a duration, and no index has its order. So a filter or an order by duration looks only at the newest
rows: see `newest_of`. A row is compared with the last 30 runs of its schedule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db.models import (
    BooleanField,
    Case,
    DateTimeField,
    F,
    FloatField,
    Func,
    OuterRef,
    QuerySet,
    Subquery,
    Value,
    When,
)
from django.db.models.functions import Coalesce
from django.db.models.lookups import GreaterThan
from django.http import HttpRequest
from django.utils import timezone as clock
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.executions.spans import end_key
from scheduling.admin.stats.runs import usual
from scheduling.admin.ui.badges import badge
from scheduling.admin.ui.durations import slow_words, took_words
from scheduling.admin.ui.text import is_number
from scheduling.admin.ui.times import format_duration
from scheduling.core.durations import SLOW_SECONDS, Usual, attempt_end
from scheduling.core.lifecycle import State
from scheduling.core.words import grouped
from scheduling.models import Attempt, SchedulerExecution
from scheduling.models.attempt_ends import attempt_ends
from scheduling.models.last_runs import last_runs
from scheduling.models.visibility import visibility_of

TOOK = "took_seconds"
"""The name of the annotation of `with_took`."""

NEWEST = 50_000
"""A filter by duration, or an order by anything but the id, looks at this many rows of the table at most: the newest of
the chosen time."""
NEWEST_OF_SCHEDULE = 20_000
"""The same limit if one schedule is chosen."""


class Seconds(Func):
    """The seconds from one instant to another, on every database. On SQLite, an unreadable instant gives NULL."""

    arity = 2
    output_field = FloatField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "((julianday(%(expressions)s)) * -86400.0)"
        return self.as_sql(compiler, connection, template=template, arg_joiner=") - julianday(", **context)

    def as_mysql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "(TIMESTAMPDIFF(MICROSECOND, %(expressions)s) / 1000000.0)"
        return self.as_sql(compiler, connection, template=template, **context)

    def as_postgresql(self, compiler: Any, connection: Any, **context: Any) -> Any:
        template = "(-EXTRACT(EPOCH FROM (%(expressions)s)))"
        return self.as_sql(compiler, connection, template=template, arg_joiner=" - ", **context)


class FewRows(Func):
    """A condition that few rows meet.

    Without this hint, SQLite takes another condition for the rarer one: it reads the index of the groups for a member,
    which has an entry for each row of the table. https://www.sqlite.org/lang_corefunc.html#likelihood
    """

    arity = 1
    template = "%(expressions)s"
    output_field = BooleanField()

    def as_sqlite(self, compiler: Any, connection: Any, **context: Any) -> Any:
        return self.as_sql(compiler, connection, template="likelihood(%(expressions)s, 0.00001)", **context)


def with_took(rows: QuerySet[SchedulerExecution]) -> QuerySet[SchedulerExecution]:
    """Lets a query filter and order by `TOOK`: the seconds of the last attempt, -1 if unknown. It costs nothing unused.

    The rule is that of `core.durations.attempt_end`. A running attempt counts up to now.
    """
    ended = Attempt.objects.filter(execution=OuterRef("pk"), number=OuterRef("attempt")).values("finished_at")[:1]
    end = Case(
        When(state=State.RUNNING.value, then=Value(clock.now(), DateTimeField())),
        When(state__in=[State.DISCARDED.value, State.CANCELLED.value], then=Subquery(ended)),
        default=F("finished_at"),
        output_field=DateTimeField(),
    )
    return rows.alias(**{TOOK: Coalesce(Seconds(F("started_at"), end), Value(-1.0), output_field=FloatField())})


def newest_of(rows: QuerySet[SchedulerExecution], request: HttpRequest) -> QuerySet[SchedulerExecution]:
    """The rows that a filter or an order by duration may read: the newest of the chosen time, of the chosen schedule.

    The limit is a range of primary keys, so the cost does not grow with the table.
    """
    chosen, all_rows, limit = request.GET.get("scheduler", ""), SchedulerExecution.objects.all(), NEWEST
    if is_number(chosen):
        all_rows, limit = all_rows.filter(scheduler=int(chosen)), NEWEST_OF_SCHEDULE
        newest = all_rows.filter(pk__lt=end_key(request)).order_by("-pk").values_list("pk", flat=True)
        edge = newest[limit : limit + 1].first()
    else:
        edge = end_key(request) - limit - 1
    if edge is None or not all_rows.filter(pk__lte=edge).exists():
        return rows
    request.__dict__["_looked_at"] = limit
    newer = GreaterThan(F("pk"), edge)
    # The rows of one schedule may be spread over the whole table, so its index is the better one.
    return rows.filter(newer if is_number(chosen) else FewRows(newer))


def limit_words(request: HttpRequest) -> str:
    """The sentence that says that `newest_of` has left out older rows; empty if it has not."""
    limit = request.__dict__.get("_looked_at")
    if limit is None:
        return ""
    text = _("Only the newest %(count)s executions were looked at. Choose dates to look at older ones.")
    return text % {"count": grouped(limit)}


def usual_of(ids: Iterable[int | None], request: HttpRequest) -> dict[int, Usual]:
    """How long the runs of each schedule usually take, from those of its last 30 executions that the user sees.

    The request keeps what was looked up, so that the filter and the list of one page read the same runs once.
    """
    kept: dict[int, Usual | None] = request.__dict__.setdefault("_usual", {})
    visible = visibility_of(request.user)
    asked = {pk for pk in ids if pk is not None}
    for pk, runs in last_runs(asked - kept.keys(), visible, ends=False).items():
        kept[pk] = usual(runs)
    return {pk: found for pk in asked if (found := kept[pk]) is not None}


def note_durations(rows: Sequence[Any], now: datetime, request: HttpRequest) -> None:
    """Set `took` and `slow` of the rows of a list: how long each took, and how much slower than usual it was.

    A run of less than `SLOW_SECONDS` is never slow. So only the schedules of the other rows are looked up.
    """
    recorded = attempt_ends((row.pk, row.state) for row in rows)
    took: dict[int, float] = {}
    for row in rows:
        running = row.state == State.RUNNING.value
        end = now if running else attempt_end(row.state, row.finished_at, recorded.get(row.pk))
        row.took = took_words(row.state, row.started_at, end, None if running else row.finished_at)
        if row.started_at is not None and end is not None:
            took[row.pk] = (end - row.started_at).total_seconds()
    known = usual_of((row.scheduler_id for row in rows if took.get(row.pk, 0.0) >= SLOW_SECONDS), request)
    for row in rows:
        row.slow = slow_words(took.get(row.pk), known.get(row.scheduler_id))


def duration_facts(
    request: HttpRequest, row: SchedulerExecution, ended: Sequence[Attempt], now: datetime
) -> list[tuple[str, Any]]:
    """The line "Duration" on the page of a run that has started, with a mark if it is slower than usual.

    It is the duration of the last attempt.

    Args:
        ended: the attempts that have ended, the newest first.
    """
    last = ended[0].finished_at if ended and ended[0].number == row.attempt else None
    end = now if row.state == State.RUNNING.value else attempt_end(row.state, row.finished_at, last)
    if row.started_at is None or end is None:
        return []
    seconds = (end - row.started_at).total_seconds()
    known = usual_of([row.scheduler_id], request).get(row.scheduler_id or 0) if seconds >= SLOW_SECONDS else None
    words, said = format_duration(seconds), slow_words(seconds, known)
    label = _("Duration of the last attempt") if row.attempt > 1 else _("Duration")
    return [(label, format_html("{} {}", words, slow_mark(said)) if said else words)]


def slow_mark(said: str) -> SafeString | str:
    """The mark of a run that was slower than usual; empty if it was not."""
    return badge(said, "clock", "warn", _("Slower than usual")) if said else ""
