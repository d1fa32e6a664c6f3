"""The panel of the occurrences of a schedule that its calendar or a freeze excludes."""

from __future__ import annotations

from datetime import datetime, tzinfo

from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.schedulers.panels import refused, table
from scheduling.admin.ui.schedules import zone_of
from scheduling.admin.ui.times import broken_after_date, format_minute
from scheduling.core.excluded_runs import ExcludedRun
from scheduling.core.known_sentences import for_reader
from scheduling.core.timing import OnExcluded
from scheduling.models import Scheduler
from scheduling.operations.excluded_runs import ExcludedRuns, excluded_runs_of

REASON_SHOWN = 200
_ROW = "<tr><td>{}</td><td>{}</td><td>{}</td></tr>"


def excluded_panel(row: Scheduler, now: datetime, shows_calendar: bool = True) -> SafeString | str:
    """The panel as HTML; empty if nothing excludes occurrences of the schedule.

    Args:
        shows_calendar: whether the user sees the calendar. Otherwise its name and its reasons are left out.
    """
    found = excluded_runs_of(row, now)
    if found.calendar is None and found.freeze is None:
        return ""
    if found.problem:
        return refused(found.problem if shows_calendar else _("A calendar that you do not see cannot be used."))
    info = zone_of(row)
    words = _words(row, found, shows_calendar)
    if not found.runs:
        return format_html('<div class="sch-panel"><p>{} {}</p></div>', words, _("It excludes none of the next runs."))
    first = found.runs[0]
    following = _("Next: %(when)s, %(reason)s.") % {
        "when": _instant(first.instant, info),
        "reason": _reason(found, first, shows_calendar).rstrip("."),
    }
    rows = (
        (
            broken_after_date(_instant(run.instant, info)),
            _reason(found, run, shows_calendar),
            _effect(row, found, run, info),
        )
        for run in found.runs
    )
    return format_html(
        '<div class="sch-panel"><p>{} {}</p><details class="sch-details"><summary>{}</summary>{}</details></div>',
        words,
        following,
        _("The next %(count)s excluded runs") % {"count": len(found.runs)},
        table(_("Excluded runs"), [_("When"), _("Why"), _("What happens")], _ROW, rows),
    )


def _words(row: Scheduler, found: ExcludedRuns, shows_calendar: bool) -> str:
    if found.calendar is None:
        return ""
    name = found.calendar.name if shows_calendar else _("of another group")
    if row.on_excluded == OnExcluded.HOLD:
        said = _("Held at the times of the calendar “%(name)s”, and run once when they end.")
    else:
        said = _("Left out at the times of the calendar “%(name)s”.")
    return said % {"name": name}


def _reason(found: ExcludedRuns, run: ExcludedRun, shows_calendar: bool) -> str:
    if not shows_calendar and not found.is_frozen(run):
        return _("excluded")
    return for_reader(run.blocked.reason, REASON_SHOWN)


def _effect(row: Scheduler, found: ExcludedRuns, run: ExcludedRun, info: tzinfo) -> str:
    until = run.blocked.until
    if found.is_frozen(run):
        if until is None:
            return _("waits until the freeze is ended")
        return _("waits until %(until)s") % {"until": _instant(until, info)}
    if row.on_excluded != OnExcluded.HOLD:
        return _("is left out")
    if until is None:
        return _("is held for ever")
    return _("is held until %(until)s") % {"until": _instant(until, info)}


def _instant(instant: datetime, info: tzinfo) -> str:
    return f"{date_format(instant.astimezone(info), 'D')} {format_minute(instant, info)}"
