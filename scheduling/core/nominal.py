"""The nominal instants of a schedule: those that its times name, within its bounds, before any rule moves or drops one.

Keys are made from nominal instants, so that no rule that is changed later makes an occurrence run twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache

from scheduling.core.cron import CronError, Timetable, count_between, last_between, next_after
from scheduling.core.occurrences import cron_key, date_key

TICK = timedelta(microseconds=1)
REMEMBERED = 4_096
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class NominalTimes:
    """The times of a schedule: an expression in a zone, or one date and time.

    Args:
        cron: the parsed expression; None if the schedule runs once, at `date_time`.
        tz: the name of the zone.
        since: no instant before it counts.
        until: no instant after it counts. An instant equal to a bound counts.
    """

    cron: Timetable | None
    tz: str
    date_time: datetime | None = None
    since: datetime | None = None
    until: datetime | None = None

    def after(self, instant: datetime) -> datetime | None:
        """The first nominal instant later than this one, in UTC; None if there is none. Raises ZoneError."""
        if self.since is not None and instant < self.since:
            instant = self.since - TICK
        if self.cron is None:
            found = self.date_time if self.date_time is not None and self.date_time > instant else None
        else:
            found = _next(self.cron, self.tz, instant)
        return found if found is not None and (self.until is None or found <= self.until) else None

    def last(self, after: datetime, until: datetime) -> datetime | None:
        """The latest nominal instant in (after, until]; None if there is none."""
        after, until = self._within(after, until)
        if self.cron is None:
            return self.date_time if self.date_time is not None and after < self.date_time <= until else None
        return last_between(self.cron, self.tz, after, until) if after < until else None

    def count(self, after: datetime, until: datetime) -> int:
        """How many nominal instants lie in (after, until]."""
        after, until = self._within(after, until)
        if self.cron is None:
            return int(self.date_time is not None and after < self.date_time <= until)
        return count_between(self.cron, self.tz, after, until) if after < until else 0

    def newest(self, count: int, after: datetime, until: datetime) -> datetime | None:
        """An instant in [after, until) after which the newest `count` nominal instants up to `until` lie, or all if
        they are fewer; None if there is none. Some tens of steps find it, also among a million."""
        if (last := self.last(after, until)) is None:
            return None
        found, span = last - TICK, timedelta(seconds=max(1, count // 2))
        if count == 1:
            return found
        while found > after:
            start = max(after, last - span) if last - after > span else after
            if self.count(start, until) > count:
                return self._exactly(count, start, found, until)
            found, span = start, span * 2
        return found

    def _exactly(self, count: int, before: datetime, found: datetime, until: datetime) -> datetime:
        while found - before > _SECOND:
            middle = before + (found - before) / 2
            if self.count(middle, until) > count:
                before = middle
            else:
                found = middle
        return found

    def key(self, nominal: datetime) -> str:
        """The execution key of the occurrence."""
        return cron_key(nominal) if self.cron is not None else date_key(nominal)

    def later_than(self, instant: datetime) -> NominalTimes:
        """The same times without the instants up to this one."""
        begin = instant + TICK
        since = begin if self.since is None else max(begin, self.since)
        return NominalTimes(self.cron, self.tz, self.date_time, since, self.until)

    @property
    def end(self) -> datetime | None:
        """No nominal instant is later than this one; None if they go on for ever."""
        return self.date_time if self.cron is None else self.until

    def _within(self, after: datetime, until: datetime) -> tuple[datetime, datetime]:
        if self.since is not None:
            after = max(after, self.since - TICK)
        return after, until if self.until is None else min(until, self.until)


@lru_cache(maxsize=REMEMBERED)
def _next(cron: Timetable, tz: str, instant: datetime) -> datetime | None:
    """The first instant later than this one. Many schedules have the same times, and a plan asks several times."""
    try:
        return next_after(cron, tz, instant)
    except CronError:
        return None
