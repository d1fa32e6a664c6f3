"""When Celery beat runs a crontab, above all when the clocks change, and where our schedules differ.

Beat looks for the next local time after that of the last run, and asks nothing else. So:

- The second pass of a repeated hour has no runs, whatever the crontab.
- A local time that the clocks skip runs at the instant that it has by the former offset: 02:30 runs at 03:30.
- If a crontab has a start time in the future, its first run is later than that instant.

Our rule for clock changes is that of Debian's cron (module ``cron``). Away from clock changes, both run at the local
times that match.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from scheduling.core.celery_crontab import CeleryCrontab
from scheduling.core.cron import CronError, next_after
from scheduling.core.dialect import Cron
from scheduling.core.timetables import parse
from scheduling.core.zones import clock_changes, zone

_DAY, _HOUR, _TICK = timedelta(days=1), timedelta(hours=1), timedelta(microseconds=1)


@dataclass(frozen=True)
class Differences:
    """Instants in UTC, ascending.

    Args:
        only_beat: when only beat runs it.
        only_ours: when only our schedules run.
    """

    only_beat: tuple[datetime, ...] = ()
    only_ours: tuple[datetime, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.only_beat or self.only_ours)


def beat_instants(crontab: CeleryCrontab, info: ZoneInfo, after: datetime, until: datetime) -> Iterator[datetime]:
    """The instants in (after, until] at which beat runs the crontab, if it was due last at `after` or before."""
    last = after
    while True:
        local = last.astimezone(info)
        wall = _next_wall(crontab, local.replace(tzinfo=None, fold=0), until.astimezone(info).date() + _DAY)
        if wall is None:
            return
        # Beat takes over the `fold` of the last run. It matters only within a repeated hour.
        last = max(wall.replace(tzinfo=info, fold=local.fold).astimezone(UTC), last)
        if last > until:
            return
        yield last


@dataclass(frozen=True)
class BeatSpan:
    """What bounds the runs of a task of beat. Instants are in UTC.

    Args:
        start: from when on it runs. Beat leaves this instant itself out, also if it is a time of the crontab.
        expires: when it is over.
        one_off: whether it runs once.
    """

    start: datetime | None = None
    expires: datetime | None = None
    one_off: bool = False

    def differences(
        self, crontab: CeleryCrontab, ours: Sequence[str], tz: str, now: datetime, until: datetime
    ) -> Differences:
        """Where beat and our expressions differ in (now, until]. Ours begin with the start, inclusive."""
        start = self.start if self.start is not None and self.start > now else None
        until = until if self.expires is None else min(until, self.expires - _TICK)
        beat_after, own_after = (now, now) if start is None else (start, start - _TICK)
        if self.one_off:
            beat = next(beat_instants(crontab, zone(tz), beat_after, until), None)
            own = min((at for cron in _crons(ours) for at in _first(cron, tz, own_after, until)), default=None)
            return Differences() if beat == own else Differences(_known(beat), _known(own))
        found = differences(crontab, ours, tz, beat_after, until)
        at_start = [] if start is None else [at for cron in _crons(ours) for at in _first(cron, tz, own_after, start)]
        return Differences(found.only_beat, (*at_start, *found.only_ours))


def _first(cron: Cron, tz: str, after: datetime, until: datetime) -> Iterator[datetime]:
    return islice(_own(cron, tz, after, until), 1)


def _known(instant: datetime | None) -> tuple[datetime, ...]:
    return () if instant is None else (instant,)


def differences(crontab: CeleryCrontab, ours: Sequence[str], tz: str, after: datetime, until: datetime) -> Differences:
    """Where beat and our expressions differ in (after, until].

    Each day and each time of the day is compared, and around clock changes each instant.

    Raises:
        ValueError: they do not mean the same local times, so the conversion is wrong.
    """
    info, crons = zone(tz), _crons(ours)
    days = after.astimezone(info).date(), until.astimezone(info).date() + _DAY
    if not _same_times(crontab, crons, *days):
        raise ValueError(f"{' | '.join(ours)} does not mean the times of {' '.join(crontab.texts)}.")
    beat, own = set[datetime](), set[datetime]()
    for change, size in clock_changes(info, after, until):
        start, end = max(after, change - size - _HOUR), min(until, change + size + _HOUR)
        beat |= set(beat_instants(crontab, info, start, end))
        for cron in crons:
            own |= set(_own(cron, tz, start, end))
    return Differences(tuple(sorted(beat - own)), tuple(sorted(own - beat)))


def _crons(expressions: Sequence[str]) -> list[Cron]:
    return [cron for cron in map(parse, expressions) if isinstance(cron, Cron)]


def _same_times(crontab: CeleryCrontab, crons: Sequence[Cron], day: date, end: date) -> bool:
    """Whether the expressions together match the same local times as the crontab, each once, on the days [day, end)."""
    if any(set(cron.minutes) != crontab.minutes or set(cron.hours) != crontab.hours for cron in crons):
        return False
    while day < end:
        if sum(cron.first_day(day) == day for cron in crons) != crontab.matches(day):
            return False
        day += _DAY
    return True


def _own(cron: Cron, tz: str, after: datetime, until: datetime) -> Iterator[datetime]:
    while True:
        try:
            after = next_after(cron, tz, after)
        except CronError:
            return
        if after > until:
            return
        yield after


def _next_wall(crontab: CeleryCrontab, wall: datetime, end: date) -> datetime | None:
    """The first local time later than `wall` that matches; None if there is none before `end`."""
    hours, minutes = sorted(crontab.hours), sorted(crontab.minutes)
    day = wall.date()
    if crontab.matches(day):
        for hour in hours:
            if hour < wall.hour:
                continue
            for minute in minutes:
                if hour > wall.hour or minute > wall.minute:
                    return datetime(day.year, day.month, day.day, hour, minute)
    day += _DAY
    while day < end:
        if crontab.matches(day):
            return datetime(day.year, day.month, day.day, hours[0], minutes[0])
        day += _DAY
    return None
