"""How many schedules start in each minute of the next 24 hours, from a bounded look at the schedules."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from scheduling.conf import get_conf
from scheduling.core.calendars import CalendarError, ExclusionCalendar
from scheduling.core.cron import CronError, ZoneError, parse
from scheduling.core.free_starts import Stretch, free_starts
from scheduling.core.hours import hours_from, starts_within
from scheduling.core.load import MINUTE, Load, load_of
from scheduling.core.nominal import NominalTimes
from scheduling.core.spread_offset import LONGEST, SpreadOffset
from scheduling.core.timing import OnExcluded
from scheduling.models import Scheduler
from scheduling.models.exclusions import calendars
from scheduling.models.plan import FIRST_INSTANT
from scheduling.models.visibility import Visibility

DAY = timedelta(days=1)

MOST_STRETCHES = 3_000
"""At most so many stretches of a calendar are looked at. In two days, it cannot have more: each has at least a minute,
and one that is free follows."""


class LoadLimits:
    """The look at the schedules is bounded, because an installation may have a million of them."""

    schedules = 10_000
    """So many schedules are read, by the index of `next_run_at`, the earliest first. A schedule that starts in a minute
    is due in this minute or before. So the minutes before the first schedule that was not read are counted in full, and
    of its own minute the count is too low."""
    seconds = 60.0
    """For so long, a process takes the same look. The form asks with each pause of the keyboard."""
    looks = 32
    """So many looks are kept, one for each set of groups."""


class Times(NamedTuple):
    """The columns that say when a schedule runs."""

    schedule: str
    timezone: str
    date_time: datetime | None
    active_from: datetime | None = None
    active_until: datetime | None = None
    calendar: int | None = None
    on_excluded: str = OnExcluded.SKIP.value
    offset: timedelta = timedelta(0)
    """By how much later a schedule that is spread starts each time."""


_TIMES = ("schedule", "timezone", "date_time", "active_from", "active_until", "calendar_id", "on_excluded")
_COLUMNS = (*_TIMES, "pk", "spread_seconds", "spread_each")

Excluded = dict[int, list[Stretch] | None]
"""Maps each calendar to what it excludes in the next 24 hours; to None if it cannot be used."""

_kept: dict[Any, tuple[float, Load]] = {}


def forget() -> None:
    """Look again at the next question."""
    _kept.clear()


def site_load(visible: Visibility, now: datetime) -> Load:
    """The load of the schedules that are seen, at most `LoadLimits.seconds` old."""
    key = frozenset(visible.own) if visible.is_limited else None
    known = _kept.get(key)
    if known is not None and time.monotonic() - known[0] < LoadLimits.seconds and known[1].start <= now < known[1].end:
        return known[1]
    found = _look(visible, now)
    while len(_kept) >= LoadLimits.looks:
        _kept.pop(next(iter(_kept)), None)
    _kept[key] = time.monotonic(), found
    return found


def _look(visible: Visibility, now: datetime) -> Load:
    rows = Scheduler.objects.filter(next_run_at__gte=FIRST_INSTANT, next_run_at__lt=now + DAY).order_by("next_run_at")
    columns = rows.values_list("next_run_at", "status", "group_id", *_COLUMNS)
    # The groups are compared here: a condition could let the database pass over a million rows of other groups.
    read: list[Sequence[Any]] = list(columns[: LoadLimits.schedules + 1])
    start, is_cut = now.replace(second=0, microsecond=0), len(read) > LoadLimits.schedules
    end = read.pop()[0] if is_cut else now + DAY
    minutes = max((end - start) // MINUTE, 0) + is_cut
    seen = (row[3:] for row in read if row[1] and visible.shows_group(row[2]))
    times = Counter(Times._make((*row[:-3], offset_of(*row[-3:]))) for row in seen)
    excluded = _excluded((one.calendar for one in times if one.calendar is not None), now)
    return load_of(start, minutes, _starts(times.items(), excluded, now), is_cut=is_cut)


def _starts(
    times: Iterable[tuple[Times, int]], excluded: Excluded, now: datetime
) -> Iterator[tuple[list[datetime], int]]:
    for one, number in times:
        yield _starts_of(one, excluded, now), number


def starts_of(row: Scheduler, now: datetime) -> list[datetime]:
    """The instants of the next 24 hours at which a schedule starts; none if it cannot be planned."""
    offset = offset_of(row.pk, row.spread_seconds, row.spread_each)
    own = Times._make((*(getattr(row, name) for name in _TIMES), offset))
    return _starts_of(own, _excluded([own.calendar] if own.calendar is not None else [], now), now)


def _starts_of(times: Times, excluded: Excluded, now: datetime) -> list[datetime]:
    stretches = excluded.get(times.calendar) if times.calendar is not None else []
    if stretches is None:
        return []
    first = now - times.offset
    try:
        cron, tz = None, times.timezone or get_conf().timezone
        if times.date_time is None:
            cron = parse(times.schedule)
            found = starts_within(cron, tz, hours_from(first))
        else:
            found = [times.date_time] if now <= times.date_time < now + DAY else []
        if stretches:
            own = NominalTimes(cron, tz, times.date_time, since=times.active_from, until=times.active_until)
            found = free_starts(found, stretches, own, holds=times.on_excluded == OnExcluded.HOLD.value, since=first)
    except (CronError, ZoneError):
        return []
    since, until = times.active_from, times.active_until
    return [
        instant + times.offset
        for instant in found
        if (since is None or since <= instant) and (until is None or instant <= until)
    ]


def _excluded(keys: Iterable[int], now: datetime) -> Excluded:
    """What these calendars exclude in the next 24 hours, and in the day before: so long, a start may be spread."""
    found: Excluded = {}
    for pk, one in calendars({*keys}).items():
        try:
            found[pk] = _stretches(one.usable(), now)
        except CalendarError:
            found[pk] = None
    return found


def _stretches(calendar: ExclusionCalendar, now: datetime) -> list[Stretch]:
    """The first stretch has its true beginning, because what is held since then starts at its end."""
    found: list[Stretch] = []
    for days in (1, 10, 100, 1_000, 4_000):
        since = now - days * DAY
        spans = islice(calendar.exclusions(since, now + DAY), MOST_STRETCHES)
        found = [(span.start, span.until) for span in spans if span.until is None or span.until >= now - LONGEST]
        if not found or found[0][0] > since:
            break
    return found


def offset_of(pk: int | None, spread_seconds: object, spread_each: object) -> timedelta:
    """By how much later a schedule starts each time; none if it has another offset each time, or is not saved yet."""
    # Plain SQL may have written any value.
    if spread_each or type(spread_seconds) is not int or not 0 < spread_seconds <= LONGEST.total_seconds():
        return timedelta(0)
    return SpreadOffset(pk, timedelta(seconds=spread_seconds)).stable
