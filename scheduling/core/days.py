"""The calendar: on which dates a schedule's day fields match.

croniter does the calendar (month lengths, leap years, ``L``, ``d#k``, the day rule) and nothing else. It is given
naive midnights only, for on zone-aware datetimes it fires fixed jobs twice in a repeated hour; and it is given only
spellings that it reads as Debian's cron does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta
from functools import lru_cache

from croniter import croniter

EVERY_DAY = "* * *"
_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1)


def spelled(
    day: str,
    weekday: str,
    days: tuple[int, ...],
    last_day: bool,
    months: tuple[int, ...],
    weekdays: tuple[int, ...],
    nth: tuple[tuple[int, int], ...],
    either: bool,
) -> str:
    """The calendar "day-of-month month weekday" in a spelling that croniter reads rightly.

    ``day`` and ``weekday`` are the fields as written, the others their values (see ``dialect.Cron``). Values are listed
    one by one, because croniter reads ``a-a`` as the whole field. A full field becomes ``*`` first, because croniter
    takes a full list for a restriction. ``*/n`` stays as it is, because its star decides the day rule.
    """
    month = "*" if len(months) == 12 else _list(months)
    if nth:
        return f"* {month} {_list(f'{d}#{k}' for d, k in nth)}"
    every_day, every_weekday = len(days) == 31, len(weekdays) == 7
    if either and (every_day or every_weekday):
        return f"* {month} *"
    if every_day or not day.startswith("*"):
        day = "*" if every_day else _list([*days, *(["l"] if last_day else [])])
    if every_weekday or not weekday.startswith("*"):
        weekday = "*" if every_weekday else _list(weekdays)
    return f"{day} {month} {weekday}"


def _list(values: Iterable[object]) -> str:
    return ",".join(map(str, values))


@lru_cache(maxsize=4096)
def first_day(calendar: str, start: date) -> date | None:
    """The first matching date on or after ``start``; None if there is none within 50 years or before year 10000.

    ``calendar`` is as ``spelled``. Fifty years are enough for the rarest date that exists: 29 February on a named
    weekday, 40 years apart across 2100.
    """
    if calendar == EVERY_DAY:
        return start
    try:
        midnight = datetime.combine(start, time())
        return _engine(calendar, threading.get_ident()).get_next(start_time=midnight - _MINUTE).date()
    except (ValueError, OverflowError):
        # croniter says "no such date" by a ValueError, and runs out of years by either.
        return None


def count_days(calendar: str, start: date, end: date) -> int:
    """How many dates match in [start, end)."""
    if calendar == EVERY_DAY:
        return max(0, (end - start).days)
    count = 0
    # Past the cache: a long stretch walked once would drive out the dates that are asked for each minute.
    found = first_day.__wrapped__(calendar, start)
    while found is not None and found < end:
        count += 1
        found = first_day.__wrapped__(calendar, found + _DAY)
    return count


@lru_cache(maxsize=512)
def _engine(calendar: str, thread: int) -> croniter[datetime]:
    # An instance keeps its current time between calls, so threads may not share one. Thread idents are reused only
    # after their thread has ended. A lock would do too, but one held during a fork would never open in the child.
    # implement_cron_bug is Debian's day rule: a day field that begins with "*" restricts the other one.
    return croniter(f"0 0 {calendar}", _EPOCH, ret_type=datetime, implement_cron_bug=True)
