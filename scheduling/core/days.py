"""The calendar: on which dates a schedule's day fields match.

croniter does the calendar (month lengths, leap years, ``L``, ``d#k``, the day rule) and nothing else. It is given
naive midnights only, for on zone-aware datetimes it fires fixed jobs twice in a repeated hour; and it is given only
spellings that it reads as Debian's cron does (see ``dialect``).
"""

from __future__ import annotations

import threading
from datetime import date, datetime, time, timedelta
from functools import lru_cache

from croniter import croniter

EVERY_DAY = "* * *"
_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1)


@lru_cache(maxsize=4096)
def first_day(calendar: str, start: date) -> date | None:
    """The first matching date on or after ``start``; None if there is none within 50 years or before year 10000.

    ``calendar`` is "day-of-month month weekday" in croniter's spelling, as ``Cron.calendar`` has it. Fifty years are
    enough for the rarest date that exists: 29 February on a named weekday, 40 years apart across 2100.
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
