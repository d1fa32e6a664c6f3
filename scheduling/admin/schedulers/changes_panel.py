"""The panel "What changes": the next runs before and after an edit side by side, and the load of the next 24 hours."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfo

from django.utils import timezone as clock
from django.utils.formats import date_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext, pgettext

from scheduling.admin.schedulers.next_runs_panel import clock_words
from scheduling.admin.schedulers.panels import table
from scheduling.admin.ui.times import EMPTY, broken_after_date, format_instant
from scheduling.core.cron import CronError, ZoneError, zone
from scheduling.core.run_changes import Mark, RunChange
from scheduling.core.words import grouped
from scheduling.models import Scheduler
from scheduling.models.visibility import Visibility
from scheduling.operations.schedule_words import zone_of
from scheduling.operations.site_load import LoadLimits
from scheduling.operations.time_machine import RUNS, Crowded, LoadChange, load_change, run_changes
from scheduling.operations.times import format_minute

MARKS = {
    Mark.SAME: ("", ""),
    Mark.CHANGED: ("~", gettext_lazy("changed")),
    Mark.ADDED: ("+", gettext_lazy("added")),
    Mark.REMOVED: ("\N{MINUS SIGN}", gettext_lazy("removed")),
}
"""The sign and the word of each mark. Each of them is enough to recognise it without its colour."""

CROWDED = 5
"""From so many starts in one minute on, emptier minutes are suggested."""

NOTHING = SafeString('<div class="sch-panel" data-live-said=""></div>')
"""The panel while there are no times to compare."""

_ROW = (
    '<tr class="sch-run-{}"><td>{}{}</td><td>{}{}</td>'
    '<td class="sch-run-mark"><span aria-hidden="true">{}</span> {}</td></tr>'
)


def changes_panel(
    stored: Scheduler | None, edited: Scheduler, visible: Visibility, now: datetime | None = None
) -> SafeString:
    """The panel as HTML.

    Args:
        stored: the schedule as it is stored; None for a new one.
        edited: with the values of the form.
        visible: the schedules that the load counts.
    """
    now = now or clock.now()
    if not edited.schedule and edited.date_time is None:
        return NOTHING
    try:
        info = zone(edited.zone_name)
        changes = run_changes(stored, edited, now) if stored is not None else []
        load = load_change(visible, stored, edited, now)
        rows = [_row(one, stored, edited, info) for one in changes]
    except (CronError, ZoneError):
        return NOTHING  # the panel of the next runs says why
    said = _said(changes) if stored is not None else ""
    told = [*([said] if said else []), *_load_words(load, info)]
    changed = any(one.mark is not Mark.SAME for one in changes)
    return format_html(
        '<div class="sch-panel" data-live-said="{}">{}{}{}{}</div>',
        " ".join(told),
        format_html("<p>{}</p>", said) if said else "",
        table(_("Next runs before and after"), _head(stored, info), _ROW, rows) if changed else "",
        format_html_join("", "<p>{}</p>", ((text,) for text in _load_words(load, info))),
        _crowded_table(load.minutes, info),
    )


def _head(stored: Scheduler | None, info: ZoneInfo) -> list[object]:
    before = zone_of(stored).key
    return [
        _("Before, in %(zone)s") % {"zone": before},
        _("After, in %(zone)s") % {"zone": info.key},
        pgettext("noun", "Change"),
    ]


def _row(one: RunChange, stored: Scheduler | None, edited: Scheduler, info: ZoneInfo) -> Sequence[object]:
    sign, word = MARKS[one.mark]
    return (one.mark.value, *_cell(one.before, stored, zone_of(stored)), *_cell(one.after, edited, info), sign, word)


def _cell(instant: datetime | None, row: Scheduler | None, info: ZoneInfo) -> tuple[object, object]:
    if instant is None or row is None:
        return EMPTY, ""
    words = clock_words(row, instant)
    note = format_html('<span class="sch-below sch-clock">{}</span>', words) if words else ""
    return broken_after_date(f"{date_format(instant.astimezone(info), 'D')} {format_instant(instant, info)}"), note


def _said(changes: Sequence[RunChange]) -> str:
    """How many of the next runs change."""
    counts = {mark: sum(one.mark is mark for one in changes) for mark in Mark}
    parts = [
        text % {"count": counts[mark]}
        for mark, text in (
            (Mark.CHANGED, ngettext("%(count)d changes", "%(count)d change", counts[Mark.CHANGED])),
            (Mark.ADDED, ngettext("%(count)d is added", "%(count)d are added", counts[Mark.ADDED])),
            (Mark.REMOVED, ngettext("%(count)d is removed", "%(count)d are removed", counts[Mark.REMOVED])),
        )
        if counts[mark]
    ]
    if not parts:
        return _("The next %(count)d runs stay as they are.") % {"count": RUNS}
    return _("Of the next runs, %(parts)s.") % {"parts": ", ".join(parts)}


def _load_words(load: LoadChange, info: ZoneInfo) -> list[str]:
    found: list[str] = []
    if (busiest := load.busiest) is not None:
        text = ngettext(
            "In its most crowded minute of the next 24 hours, %(time)s, %(count)d schedule starts; without the edit, "
            "%(without)d.",
            "In its most crowded minute of the next 24 hours, %(time)s, %(count)d schedules start; without the edit, "
            "%(without)d.",
            busiest.with_it,
        )
        facts = {"time": format_minute(busiest.at, info), "count": busiest.with_it, "without": busiest.without}
        found.append(text % facts)
        if busiest.with_it >= CROWDED and load.emptier:
            near = ", ".join(f"{at.astimezone(info):%H:%M} ({count})" for at, count in load.emptier)
            found.append(_("Emptier minutes near it, with their starts: %(minutes)s.") % {"minutes": near})
    if load.is_cut:
        text = _(
            "Only the first %(most)s schedules that are due were looked at, so the minutes after %(time)s are not "
            "counted."
        )
        facts = {"most": grouped(LoadLimits.schedules), "time": format_minute(load.until, info)}
        found.append(text % facts)
    return found


def _crowded_table(minutes: Sequence[Crowded], info: ZoneInfo) -> SafeString | str:
    if not minutes:
        return ""
    row = "<tr><td>{} {}</td><td>{}</td><td>{}</td></tr>"
    lines = (
        (format_minute(one.at, info), _("(this schedule)") if one.own else "", one.without, one.with_it)
        for one in minutes
    )
    head = [_("Most crowded minutes"), _("Starts without the edit"), _("With it")]
    return table(_("The most crowded minutes of the next 24 hours"), list(head), row, lines)
