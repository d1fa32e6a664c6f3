"""The finding about failures that wait in the inbox, with their most frequent causes."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.core.text import visible_text
from scheduling.inbox.causes import Cause, causes_of
from scheduling.models import Scheduler
from scheduling.models.counts import Count
from scheduling.models.scheduler import load_names
from scheduling.models.time_words import format_span
from scheduling.monitoring.findings import watched
from scheduling.monitoring.findings.finding import NAMED_ROWS, Finding, Level, Named, ok
from scheduling.monitoring.findings.present import LOOKED_AT, Present


def examine(present: Present) -> Iterator[Finding]:
    """Name the most frequent causes of the failures that wait in the inbox."""
    newest = present.failures
    if not newest:
        yield ok("inbox", "The failed inbox is empty.")
        return
    causes = causes_of(failed[:-1] for failed in newest[:LOOKED_AT])
    named = causes[:NAMED_ROWS]
    errors = {failed.pk: failed.error_class for failed in newest}
    only = {pk for cause in named if len(cause.schedulers) == 1 for pk in cause.schedulers}
    schedules = present.visible.schedules().in_bulk(only)
    load_names(schedules.values())
    capped = len(newest) > LOOKED_AT
    waiting = present.count(watched.failed) if capped else len(newest)
    yield Finding(
        "inbox",
        Level.WARN,
        _("Failures in the inbox: %(count)s.") % {"count": waiting},
        _("Fix the cause, then republish."),
        [_named(cause, errors[cause.latest], schedules, present.now) for cause in named],
        Count(len(causes) - len(named), capped),
    )


def _named(cause: Cause, error: str, schedules: dict[int, Scheduler], now: datetime) -> Named:
    """The cause in words: `149 x TimeoutError` and `Import orders, first failure 2 h ago`."""
    facts = {"count": cause.count, "error": visible_text(error.rpartition(".")[2] or _("no error class"), 80)}
    about = _whose(cause, schedules)
    if cause.ends:
        age = format_span(max(0.0, (now - min(cause.ends)).total_seconds()))
        about = _("%(whose)s, first failure %(time)s ago") % {"whose": about, "time": age}
    return Named(_("%(count)d x %(error)s") % facts, about, cause.latest, cause.fingerprint, cause.count)


def _whose(cause: Cause, schedules: dict[int, Scheduler]) -> str:
    if len(cause.schedulers) == 1 and (row := schedules.get(*cause.schedulers)) is not None:
        return visible_text(row, 80)
    if len(cause.schedulers) > 1:
        many = len(cause.schedulers)
        return ngettext("%(count)d schedule", "%(count)d schedules", many) % {"count": many}
    ((_type, name), _count), *_others = cause.targets.most_common()
    return visible_text(name or _("messages that cannot be read"), 80)
