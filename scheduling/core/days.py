"""Finds the dates on which the day fields of a schedule match.

The library croniter finds the dates: it knows month lengths, leap years, ``L``, ``d#k`` and the day rule. croniter is
not used for times of day, because with zone-aware datetimes croniter fires fixed jobs twice in a repeated hour.
Therefore croniter gets only naive midnights. It also gets only spellings that croniter and Debian's cron interpret in
the same way.
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


def format_days(
    day: str,
    weekday: str,
    days: tuple[int, ...],
    last_day: bool,
    months: tuple[int, ...],
    weekdays: tuple[int, ...],
    nth: tuple[tuple[int, int], ...],
    either: bool,
) -> str:
    """The three day fields "day-of-month month weekday", in a spelling that croniter reads correctly.

    ``day`` and ``weekday`` are fields as written. The other arguments are attributes of ``dialect.Cron``. Values
    are listed one by one, because croniter reads ``a-a`` as the whole field. A field that allows all values becomes
    ``*``, because croniter treats a full list as a restriction. ``*/n`` is not changed, because the day rule depends
    on the star.
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

    ``calendar`` is a result of ``format_days``. The rarest date is 29 February on a given weekday. It comes again after
    at most 40 years, so 50 years are enough. (The 40 years occur around 2100, which is not a leap year.)
    """
    if calendar == EVERY_DAY:
        return start
    try:
        midnight = datetime.combine(start, time())
        return _engine(calendar, threading.get_ident()).get_next(start_time=midnight - _MINUTE).date()
    except (ValueError, OverflowError):
        # croniter raises ValueError if no date matches. Near year 10000 it raises ValueError or OverflowError.
        return None


def count_days(calendar: str, start: date, end: date) -> int:
    """How many dates match in [start, end)."""
    if calendar == EVERY_DAY:
        return max(0, (end - start).days)
    count = 0
    # The cache of `first_day` is bypassed. Otherwise many dates of one count would evict dates that are needed often.
    found = first_day.__wrapped__(calendar, start)
    while found is not None and found < end:
        count += 1
        found = first_day.__wrapped__(calendar, found + _DAY)
    return count


@lru_cache(maxsize=512)
def _engine(calendar: str, thread: int) -> croniter[datetime]:
    # A croniter object keeps its current time between calls, so each thread has its own object. (The id of a thread is
    # reused only after the thread has ended.) A shared object would need a lock, and a child that is forked while the
    # lock is held would wait for ever.
    # The option implement_cron_bug selects Debian's day rule: if the day-of-month or weekday field begins with "*",
    # both fields must match.
    return croniter(f"0 0 {calendar}", _EPOCH, ret_type=datetime, implement_cron_bug=True)
