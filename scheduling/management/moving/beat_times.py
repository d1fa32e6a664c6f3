"""When a task of Celery beat runs, in the words of our schedules."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.core.celery_crontab import CeleryCrontabError, parse_celery
from scheduling.core.celery_days import CannotSay, expressions
from scheduling.core.celery_instants import BeatSpan, Differences
from scheduling.core.celery_spelling import spellings
from scheduling.core.zones import ZoneError, zone
from scheduling.management.moving.beat_tables import Values
from scheduling.operations.times import format_minute

COMPARED = timedelta(days=731)
"""So far ahead the instants of beat and of the new schedules are compared."""
SHOWN = 6
_SECOND, _MINUTE = timedelta(seconds=1), timedelta(minutes=1)
_UNITS = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}


class Listed(ValueError):
    """The task cannot be converted here. The message is a sentence."""


@dataclass
class Times:
    """The times of one task.

    Args:
        schedules: one expression or several; empty with a `date_time`.
        differing: where the instants of the next two years differ from beat's.
        earlier: so much earlier than with beat is each instant, because an interval begins at a full minute or second.
            Bounds move with the instants, or the first one would lie before the start time.
    """

    schedules: list[str] = field(default_factory=list)
    date_time: datetime | None = None
    timezone: str = ""
    notes: list[str] = field(default_factory=list)
    differing: Differences = field(default_factory=Differences)
    earlier: timedelta = timedelta(0)


def crontab_times(row: Values, task: Values, now: datetime, exact: bool) -> Times:
    """The times of a crontab.

    Args:
        exact: refuse what differs from beat in an instant. Else the instants are noted.

    Raises:
        Listed: they cannot be converted.
    """
    columns = ("minute", "hour", "day_of_month", "month_of_year", "day_of_week")
    texts = [row[name] for name in columns]
    if missing := [name for name, text in zip(columns, texts, strict=True) if not isinstance(text, str)]:
        raise Listed(_("The column %(name)s of its crontab has no text.") % {"name": missing[0]})
    try:
        name = zone(str(row["timezone"] or "UTC")).key
        crontab = parse_celery(*texts)
        found = expressions(crontab)
    except (CeleryCrontabError, CannotSay, ZoneError) as error:
        raise Listed(str(error)) from None
    span = BeatSpan(_instant(task, "start_time"), _instant(task, "expires"), one_off=bool(task["one_off"]))
    try:
        differing = span.differences(crontab, found, name, now, now + COMPARED)
        for some in spellings(found) if exact and differing else ():
            if not (other := span.differences(crontab, some, name, now, now + COMPARED)):
                found, differing = some, other
                break
    except ValueError as error:  # no row may stop the others, also if the conversion were wrong
        raise Listed(str(error)) from None
    if not differing:
        return Times(found, timezone=name)
    said = told(differing, zone(name))
    if exact:
        raise Listed(_("Its instants differ from those of Celery beat. ") + said)
    return Times(found, timezone=name, differing=differing, notes=[said])


def told(differing: Differences, info: tzinfo) -> str:
    """The instants that differ in the next two years, as a sentence for each side."""
    said = []
    if differing.only_ours:
        said.append(_("Only here, it runs at: %(instants)s.") % {"instants": _listed(differing.only_ours, info)})
    if differing.only_beat:
        said.append(_("Only beat runs it at: %(instants)s.") % {"instants": _listed(differing.only_beat, info)})
    return " ".join(said)


def _listed(instants: tuple[datetime, ...], info: tzinfo) -> str:
    shown = ", ".join(format_minute(one, info) for one in instants[:SHOWN])
    more = len(instants) - SHOWN
    if more <= 0:
        return shown
    return shown + ngettext(", and %(more)s more", ", and %(more)s more", more) % {"more": more}


def interval_times(row: Values, task: Values, seconds: bool, exact: bool) -> Times:
    """The times of an interval, from the last run of beat on.

    Args:
        seconds: whether the site allows intervals that count seconds.
        exact: refuse an interval that would begin at another second.

    Raises:
        Listed: they cannot be converted.
    """
    every, period = _whole(row["every"]), row["period"]
    if every is None or every < 1:
        raise Listed(_("Its interval has no number of periods: %(value)r.") % {"value": row["every"]})
    if period == "microseconds" and every % 1_000_000 == 0:
        every, period = every // 1_000_000, "seconds"
    if period not in _UNITS:
        said = _("An interval is counted in whole seconds at least, and not in “%(period)s”.")
        raise Listed(said % {"period": str(period)[:40]})
    length = every * _UNITS[period]
    exactly, notes = _beginning(task, length), list[str]()
    start = exactly.replace(microsecond=0)
    if not seconds:
        if length % 60:
            raise Listed(_("Its interval counts seconds. The setting CRON_SECONDS allows it."))
        if start.second:
            said = _("It begins at a full minute, %(seconds)s s earlier than with beat. CRON_SECONDS keeps the second.")
            said %= {"seconds": start.second}
            if exact:
                raise Listed(said)
            notes.append(said)
            start = start.replace(second=0)
    hours, rest = divmod(length, 3_600)
    text = "".join(f"{number}{unit}" for number, unit in ((hours, "h"), (rest // 60, "m"), (rest % 60, "s")) if number)
    since = start.strftime("%Y-%m-%dT%H:%M:%SZ" if start.second else "%Y-%m-%dT%H:%MZ")
    return Times([f"@every {text} from {since}"], notes=notes, earlier=exactly - start)


def _beginning(task: Values, length: int) -> datetime:
    """The instant from which beat counts: the last run, the start time, or the last change of the row.

    If the interval is over when the start time comes, beat runs the task at the start time, and counts from there.
    """
    last, start, changed = (_instant(task, name) for name in ("last_run_at", "start_time", "date_changed"))
    found = last or changed
    if found is None:
        raise Listed(_("It has neither a last run nor an instant of its last change, from which beat counts."))
    if start is not None and start > found and (last is None or last + timedelta(seconds=length) <= start):
        found = start
    return found


def clocked_times(row: Values, task: Values, now: datetime) -> Times:
    """The one instant of a clocked task.

    Raises:
        Listed: it has passed, or beat would not run it then.
    """
    at, start, expires = row["clocked_time"], task["start_time"], task["expires"]
    if at is None:
        raise Listed(_("Its clocked schedule has no time."))
    at = utc(at)
    if at <= now:
        raise Listed(_("Its time has passed: %(time)s.") % {"time": format_minute(at, UTC)})
    if start is not None and utc(start) > at:
        raise Listed(_("Its start time is later than its clocked time."))
    if expires is not None and utc(expires) <= at:
        raise Listed(_("It expires before its clocked time, so beat never runs it."))
    return Times(date_time=at)


def _instant(task: Values, name: str) -> datetime | None:
    return None if task[name] is None else utc(task[name])


def utc(instant: datetime) -> datetime:
    """The instant in UTC. Beat reads one without a zone as UTC, too."""
    return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)


def _whole(value: Any) -> int | None:
    """The value as a whole number; None if it is none. The database may give it as a text."""
    try:
        return int(str(value))
    except ValueError:
        return None
