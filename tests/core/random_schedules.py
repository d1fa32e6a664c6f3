"""Random schedules with rules of their own, each as values for the software and for a slow model (`slow_year`)."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal
from zoneinfo import ZoneInfo

from tests.core import every
from tests.core.brute_calendar import Line, random_lines

MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)

CHANGING = (
    "America/New_York", "America/St_Johns", "America/Havana", "Africa/Casablanca", "Europe/Berlin", "Europe/London",
    "Antarctica/Troll", "Australia/Sydney", "Australia/Lord_Howe", "Pacific/Chatham",
)  # fmt: skip
"""Zones whose clocks change on 8, 22 and 29 March and 5 April 2026: by 30 minutes, an hour or two, at midnight, too."""
STEADY = ("UTC", "Asia/Tokyo", "Asia/Kathmandu")

_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True)
class RandomCalendar:
    """A calendar: lines in a zone."""

    tz: str
    lines: Sequence[Line]

    @property
    def entries(self) -> str:
        return "\n".join(line.text for line in self.lines)


@dataclass(frozen=True)
class RandomSchedule:
    """One schedule. Exactly one of `cron`, `interval` and `date` is set.

    Args:
        calendar: its place in the list of calendars; None: it has none.
        most: the number of runs after which it is paused; None: no bound.
    """

    tz: str
    cron: str = ""
    interval: every.Real | every.Days | None = None
    date: datetime | None = None
    spread: int | None = None
    each: bool = False
    missed: Literal["latest", "none", "all"] = "latest"
    cap: int | None = None
    within: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    hold: bool = False
    calendar: int | None = None
    most: int | None = None

    @property
    def expression(self) -> str:
        return self.interval.expression if self.interval is not None else self.cron

    @property
    def columns(self) -> dict[str, Any]:
        """The columns of a `Scheduler`, without its calendar."""
        return {
            "schedule": self.expression, "date_time": self.date, "timezone": self.tz, "spread_seconds": self.spread,
            "spread_each": self.each, "missed_runs": self.missed, "missed_cap": self.cap,
            "missed_within_seconds": self.within, "active_from": self.since, "active_until": self.until,
            "on_excluded": "hold" if self.hold else "skip", "max_runs": self.most,
        }  # fmt: skip


def random_calendars(pick: random.Random, count: int, begin: datetime, days: int) -> list[RandomCalendar]:
    """Calendars that exclude something in the days after `begin`."""
    found = list[RandomCalendar]()
    while len(found) < count:
        lines = [line for _number in range(3) for line in random_lines(pick, begin.date(), days)]
        if lines:
            found.append(
                RandomCalendar(pick.choice([*CHANGING, "UTC", *["Europe/Berlin", "America/New_York"] * 5]), lines)
            )
    return found


def random_schedule(pick: random.Random, begin: datetime, days: int, calendars: int) -> RandomSchedule:
    """A schedule with something to do in the days after `begin`.

    Args:
        calendars: how many calendars there are.
    """
    tz = pick.choice(CHANGING if pick.random() < 0.85 else STEADY)
    rules: dict[str, Any] = {"calendar": pick.randrange(calendars) if calendars and pick.random() < 0.5 else None}
    rules["hold"] = rules["calendar"] is not None and pick.random() < 0.5
    rules["missed"] = missed = pick.choice(["latest", "none", "all"])
    rules["cap"] = pick.choice([None, 1, 3, 20]) if missed == "all" else None
    rules["within"] = pick.choice([None, 600, 7200, 10**6]) if missed != "none" else None
    kind = pick.random()
    if kind < 0.1:
        return RandomSchedule(tz, date=_instant(pick, begin, days), **rules)
    rules["spread"] = spread = pick.choice([None, None, 60, 1800, 7200, 20_000, 86_400])
    rules["each"] = spread is not None and pick.random() < 0.5
    rules["most"] = pick.choice([None, None, None, 1, 7, 30])
    if pick.random() < 0.3:
        edges = sorted([_instant(pick, begin, days), _instant(pick, begin, days)])
        rules |= dict(zip(("since", "until"), edges, strict=True))
        rules |= {pick.choice(["since", "until"]): None} if pick.random() < 0.5 else {}
    if kind < 0.35:
        return RandomSchedule(tz, interval=_interval(pick, begin), **rules)
    return RandomSchedule(tz, cron=_cron(pick), **rules)


def _instant(pick: random.Random, begin: datetime, days: int) -> datetime:
    """A whole minute in the days after `begin`, often near a clock change."""
    at = begin + MINUTE * pick.randrange(1, days * 1440)
    changes = [datetime(2026, 3, 8, 7), datetime(2026, 3, 22, 2), datetime(2026, 3, 29, 1), datetime(2026, 4, 4, 16)]
    near = pick.choice(changes).replace(tzinfo=UTC) + MINUTE * pick.randrange(-180, 180)
    return near if near > begin and pick.random() < 0.3 else at


def _cron(pick: random.Random) -> str:
    minute = pick.choice(["0", "30", "1", "59", str(pick.randrange(60)), "15,45", "*/30", "0-10/5"])
    # About half of the expressions match the hours of clock changes.
    hour = pick.choice(
        ["0", "1", "2", "2", "3", "23,0", "1-3", "2,14", str(pick.randrange(24)), "*/6", "*/12", "8-17/3"]
    )
    if pick.random() < 0.06:
        minute, hour = pick.choice([("7", "*"), ("*/20", "0-3"), ("0", "0-23"), ("50", "*/2")])
    days = pick.choice(["* * *"] * 6 + ["* * 1-5", "* * sun", "* * 0,6", "1,15 * 1", "L * *", "*/2 * *", "* * 0#2",
                                        "8,22,29 3 *", "* 3,4 *", "5 4 sun", "* */2 *"])  # fmt: skip
    return f"{minute} {hour} {days}"


def _interval(pick: random.Random, begin: datetime) -> every.Real | every.Days:
    if pick.random() < 0.5:
        seconds = pick.choice([90, 95, 240, 360, 420, 1_500, 2_160]) * 60
        start, since = datetime(2001, 1, 1, tzinfo=UTC), ""
        if pick.random() < 0.6:
            start = begin.replace(second=0, microsecond=0) + MINUTE * pick.randrange(-20_000, 3_000)
            local = start.astimezone(ZoneInfo(pick.choice(CHANGING)))
            since = f" from {local:%Y-%m-%dT%H:%M%z}"
        return every.Real(f"@every {seconds // 60}m{since}", seconds, start)
    start, since = date(2001, 1, 1), ""
    if pick.random() < 0.6:
        start = begin.date() + DAY * pick.randrange(-30, 3)
        since = f" from {start}"
    hour, minute = pick.choice([0, 1, 2, 2, 3, 8, 23]), pick.choice([0, 1, 15, 30, 59])
    number, weekdays = pick.choice([1, 1, 2, 3]), tuple[int, ...]()
    on = ""
    if pick.random() < 0.5:
        weekdays = tuple(sorted(pick.sample(range(7), pick.randrange(1, 5))))
        on = f" on {','.join(_WEEKDAYS[day] for day in weekdays)}"
        if pick.random() < 0.2:
            weekdays, on = (start.weekday(),), ""
    unit = "w" if weekdays else "d"
    return every.Days(
        f"@every {number}{unit}{on} at {hour:02}:{minute:02}{since}", number, weekdays, hour, minute, start
    )
