"""What a calendar excludes in the next 12 months: a sheet of each month, and a list."""

from __future__ import annotations

import calendar as months
from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta, tzinfo
from itertools import islice

from django.utils.formats import date_format, get_format
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.ui.badges import icon
from scheduling.admin.ui.times import broken_after_date, format_minute
from scheduling.core.calendar_entries import MINUTES_A_DAY, wrong_lines
from scheduling.core.calendars import CalendarError, Excluded, ExclusionCalendar, parse_calendar
from scheduling.core.known_sentences import for_reader
from scheduling.core.text import visible_text
from scheduling.core.words import grouped
from scheduling.core.zones import ZoneError, zone
from scheduling.models.calendar import MOST_WRONG

MONTHS = 12
LISTED = 10
MOST_TYPED = 200_000
"""A longer text is checked when it is saved, not while the user types."""

YEAR = timedelta(days=366)


def calendar_panel(entries: str, zone_name: str, now: datetime) -> SafeString:
    """The panel as HTML: what is wrong, or what is excluded from now on."""
    try:
        info = zone(zone_name)
    except ZoneError as error:
        return _refused([str(error)])
    try:
        parsed = parse_calendar(entries, zone_name)
    except CalendarError as error:
        return _refused(wrong_lines(entries, MOST_WRONG) or [str(error)])
    if parsed.is_empty:
        return _said(_("It has no entries, so it excludes nothing."))
    found = list(islice(parsed.exclusions(now, now + YEAR), LISTED + 1))
    blocked = parsed.blocked(now)
    if blocked is None:
        words = _("It excludes nothing now.")
    elif blocked.until is None:
        words = _("It excludes everything from now on, for more than 10 years: %(reason)s.")
    else:
        words = _("It excludes the present time, until %(until)s: %(reason)s.")
    facts = {} if blocked is None else {
        "reason": for_reader(blocked.reason, 120), "until": _instant(blocked.until, info) if blocked.until else "",
    }  # fmt: skip
    count = len(parsed.reasons)
    sentence = ngettext("%(count)s entry.", "%(count)s entries.", count) % {"count": grouped(count)}
    return format_html(
        '<div class="sch-panel" data-live-said="{0} {1}"><p>{0} {1}</p>{2}{3}</div>',
        sentence, words % facts, _sheets(parsed, now.astimezone(info).date()), _list(found, info),
    )  # fmt: skip


def too_long_panel() -> SafeString:
    return _said(_("The text is too long to be checked while you type. It is checked when you save it."))


def _said(text: str) -> SafeString:
    return format_html('<div class="sch-panel" data-live-said="{0}"><p class="sch-quiet">{0}</p></div>', text)


def _refused(said: Sequence[str]) -> SafeString:
    shown = [(icon("warn"), visible_text(line, 400)) for line in said]
    return format_html(
        '<div class="sch-panel" data-live-said="{}">{}</div>',
        " ".join(line for _icon, line in shown),
        format_html_join("", '<p class="sch-note sch-note-bad">{} {}</p>', shown),
    )


def _instant(instant: datetime, info: tzinfo) -> str:
    return f"{date_format(instant.astimezone(info), 'D')} {format_minute(instant, info)}"


def _list(found: Sequence[Excluded], info: tzinfo) -> SafeString | str:
    """The next exclusions as a table."""
    if not found:
        return format_html("<p>{}</p>", _("It excludes nothing in the next 12 months."))
    rows = (
        (
            broken_after_date(_instant(one.start, info)),
            _("never") if one.until is None else broken_after_date(_instant(one.until, info)),
            visible_text("; ".join(one.reasons), 200),
        )
        for one in found[:LISTED]
    )
    more = format_html('<p class="sch-quiet">{}</p>', _("There are more.")) if len(found) > LISTED else ""
    return format_html(
        '<div class="sch-scroll"><table class="sch-table"><caption class="sch-hidden">{}</caption><thead><tr>'
        '<th scope="col">{}</th><th scope="col">{}</th><th scope="col">{}</th></tr></thead><tbody>{}</tbody></table>'
        "</div>{}",
        _("What it excludes next"), _("From"), _("Until"), _("Why"),
        format_html_join("", "<tr><td>{}</td><td>{}</td><td>{}</td></tr>", rows), more,
    )  # fmt: skip


def _sheets(parsed: ExclusionCalendar, today: date) -> SafeString:
    """A sheet of each month. A day that is excluded whole is filled, one that is excluded in part is half filled."""
    first = int(get_format("FIRST_DAY_OF_WEEK") or 0)  # 0 is Sunday
    weeks = months.Calendar((first - 1) % 7)
    sheets = format_html_join("", "{}", ((_sheet(parsed, weeks, month),) for month in _months(today)))
    legend = format_html(
        '<p class="sch-quiet sch-days-legend"><span class="sch-day sch-day-all" aria-hidden="true">1</span>'
        '<span>{}</span><span class="sch-day sch-day-part" aria-hidden="true">1</span><span>{}</span></p>',
        _("excluded all day"),
        _("excluded in part"),
    )
    return format_html('{}<div class="sch-months">{}</div>', legend, sheets)


def _months(today: date) -> Iterator[date]:
    for number in range(MONTHS):
        years, month = divmod(today.month - 1 + number, 12)
        yield date(today.year + years, month + 1, 1)


def _sheet(parsed: ExclusionCalendar, weeks: months.Calendar, month: date) -> SafeString:
    names = [date_format(date(2024, 1, 1 + day), "D") for day in weeks.iterweekdays()]  # 2024 began on a Monday
    rows = (
        (format_html_join("", "{}", ((_day(parsed, day, month),) for day in week)),)
        for week in weeks.monthdatescalendar(month.year, month.month)
    )
    return format_html(
        '<table class="sch-month"><caption>{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table>',
        date_format(month, "F Y"),
        format_html_join("", '<th scope="col">{}</th>', ((name[:2],) for name in names)),
        format_html_join("", "<tr>{}</tr>", rows),
    )


def _day(parsed: ExclusionCalendar, day: date, month: date) -> SafeString:
    if day.month != month.month:
        return SafeString("<td></td>")
    found = parsed.of_day(day)
    if not found:
        return format_html("<td>{}</td>", day.day)
    whole = sum(end - first for first, end, _reason in found) == MINUTES_A_DAY
    reasons = "; ".join(dict.fromkeys(reason for _first, _end, reason in found))
    return format_html(
        '<td><span class="sch-day sch-day-{}" title="{}">{}</span><span class="sch-hidden"> {}</span></td>',
        "all" if whole else "part",
        visible_text(reasons, 120),
        day.day,
        _("excluded all day") if whole else _("excluded in part"),
    )
