"""How many schedules start in each minute of the next 24 hours, from a bounded look at the schedules."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from scheduling.conf import get_conf
from scheduling.core.cron import CronError, ZoneError, parse
from scheduling.core.hours import hours_from, starts_within
from scheduling.core.load import MINUTE, Load, load_of
from scheduling.core.spread_offset import LONGEST, SpreadOffset
from scheduling.models import Scheduler
from scheduling.models.plan import FIRST_INSTANT
from scheduling.models.visibility import Visibility

DAY = timedelta(days=1)


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
    offset: timedelta = timedelta(0)
    """By how much later a schedule that is spread starts each time."""


_COLUMNS = ("schedule", "timezone", "date_time", "pk", "spread_seconds", "spread_each")

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
    times = Counter(_times(*row[3:]) for row in read if row[1] and visible.shows_group(row[2]))
    return load_of(start, minutes, _starts(times.items(), now), is_cut=is_cut)


def _times(
    schedule: str, timezone: str, date_time: datetime | None, pk: int, spread_seconds: object, spread_each: object
) -> Times:
    return Times(schedule, timezone, date_time, offset_of(pk, spread_seconds, spread_each))


def _starts(times: Iterable[tuple[Times, int]], now: datetime) -> Iterator[tuple[list[datetime], int]]:
    for one, number in times:
        yield starts_of(one, now), number


def starts_of(times: Times, now: datetime) -> list[datetime]:
    """The instants of the next 24 hours at which a schedule with these times starts; none if they are invalid.

    Calendars and bounds are not looked at.
    """
    if times.date_time is not None:
        return [times.date_time] if now <= times.date_time < now + DAY else []
    try:
        edges = hours_from(now - times.offset)
        found = starts_within(parse(times.schedule), times.timezone or get_conf().timezone, edges)
    except (CronError, ZoneError):
        return []
    return [instant + times.offset for instant in found] if times.offset else found


def offset_of(pk: int | None, spread_seconds: object, spread_each: object) -> timedelta:
    """By how much later a schedule starts each time; none if it has another offset each time, or is not saved yet."""
    # Plain SQL may have written any value.
    if spread_each or type(spread_seconds) is not int or not 0 < spread_seconds <= LONGEST.total_seconds():
        return timedelta(0)
    return SpreadOffset(pk, timedelta(seconds=spread_seconds)).stable
