"""The finding about failures that wait in the inbox, with their most frequent causes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db.models import DateTimeField, QuerySet, Value
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.core.lifecycle import State
from scheduling.core.text import visible_text
from scheduling.inbox.causes import COLUMNS, Cause, Failure, causes_of
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.counts import Count, count
from scheduling.models.scheduler import TARGETS
from scheduling.monitoring.findings.finding import NAMED_ROWS, Finding, Level, Named, ok, span

LOOKED_AT = 1_000
"""How many of the newest failures are read to find the causes."""


def examine(now: datetime) -> Iterator[Finding]:
    """Name the most frequent causes of the failures that wait in the inbox."""
    failures = SchedulerExecution.objects.in_state(State.FAILED).order_by("-pk")
    newest = _newest(failures)
    if not newest:
        yield ok("inbox", "The failed inbox is empty.")
        return
    causes = causes_of(newest[:LOOKED_AT])
    named = causes[:NAMED_ROWS]
    errors = dict(
        SchedulerExecution.objects.filter(pk__in=[cause.latest for cause in named]).values_list("pk", "error_class")
    )
    only = {pk for cause in named if len(cause.schedulers) == 1 for pk in cause.schedulers}
    schedules = Scheduler.objects.prefetch_related(*TARGETS).in_bulk(only)
    capped = len(newest) > LOOKED_AT
    waiting = count(failures) if capped else len(newest)
    yield Finding(
        "inbox",
        Level.WARN,
        _("Failures in the inbox: %(count)s.") % {"count": waiting},
        _("Fix the cause, then republish."),
        [_named(cause, errors.get(cause.latest, ""), schedules, now) for cause in named],
        Count(len(causes) - len(named), capped),
    )


def _newest(failures: QuerySet[SchedulerExecution]) -> list[Failure]:
    try:
        return list(failures.values_list(*COLUMNS)[: LOOKED_AT + 1])
    except (
        ValueError
    ):  # plain SQL has written an instant that Python cannot read; the other columns are numbers and texts
        without = ["ended" if name == "finished_at" else name for name in COLUMNS]
        ended = Value(None, output_field=DateTimeField())
        return list(failures.annotate(ended=ended).values_list(*without)[: LOOKED_AT + 1])


def _named(cause: Cause, error: str, schedules: dict[int, Scheduler], now: datetime) -> Named:
    """The cause in words: `149 x TimeoutError` and `Import orders, for 2 h`."""
    facts = {"count": cause.count, "error": visible_text(error.rpartition(".")[2] or _("no error class"), 80)}
    about = _whose(cause, schedules)
    if cause.ends:
        age = span(max(0.0, (now - min(cause.ends)).total_seconds()))
        about = _("%(whose)s, for %(time)s") % {"whose": about, "time": age}
    return Named(_("%(count)d x %(error)s") % facts, about, cause.latest, cause.fingerprint, cause.count)


def _whose(cause: Cause, schedules: dict[int, Scheduler]) -> str:
    if len(cause.schedulers) == 1 and (row := schedules.get(*cause.schedulers)) is not None:
        return visible_text(row, 80)
    if len(cause.schedulers) > 1:
        many = len(cause.schedulers)
        return ngettext("%(count)d schedule", "%(count)d schedules", many) % {"count": many}
    ((_type, name), _count), *_others = cause.targets.most_common()
    return visible_text(name or _("messages that cannot be read"), 80)
