"""A random script: schedules over a clock change, and what an operator and other code do meanwhile.

Occurrences fall on full and half hours, and what an operator does on quarters between them. So a process that is late
by less than `LATE` makes the same rows as one that is not late at all.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from scheduling.api import run
from scheduling.models import Scheduler, Worker

HOURS = 5
LATE = timedelta(minutes=9)
RARE = "0 0 1 1 *"

CLOCK_CHANGES = (
    ("Europe/Berlin", "2026-03-29T01:00:00+00:00"),
    ("Europe/Berlin", "2026-10-25T01:00:00+00:00"),
    ("America/New_York", "2026-03-08T07:00:00+00:00"),
    ("America/New_York", "2026-11-01T06:00:00+00:00"),
    ("Australia/Lord_Howe", "2026-04-04T15:00:00+00:00"),  # by half an hour
    ("Australia/Lord_Howe", "2026-10-03T15:30:00+00:00"),
    ("America/St_Johns", "2027-03-14T05:30:00+00:00"),
)
CRONS = (
    "*/30 * * * *", "0,30 * * * *", "0 * * * *", "30 * * * *", "@hourly", "30 2 * * *", "0 2,3 * * *", "30 1-3 * * *",
    "*/30 1-2 * * *", "0 */2 * * *", "0 1 * * *", "0 3 * * 0,6", "30 */3 * * *",
)  # fmt: skip
CERTAIN = (("noop", {}), ("give", {"value": [1, None]}), ("gives_up", {}), ("never_again", {}))
"""Handlers without retries, and their params."""
FAILING = ("fail", "fail_once", "exit", "soon_again")


@dataclass(frozen=True)
class Planned:
    """A schedule of the script. `once` is the time from the beginning to its only occurrence."""

    handler: str
    columns: dict[str, Any]
    params: dict[str, Any] = field(default_factory=dict)
    once: timedelta | None = None


@dataclass(frozen=True)
class Deed:
    """What is done at a time after the beginning: columns of a schedule are set, or a run is asked for."""

    at: timedelta
    schedule: int | None = None
    columns: dict[str, Any] = field(default_factory=dict)
    handler: str = "noop"
    delay: timedelta | None = None


@dataclass(frozen=True)
class Script:
    """What is planned at the beginning, and what is done later, in the order of time."""

    begin: datetime
    planned: list[Planned]
    deeds: list[Deed]

    @property
    def end(self) -> datetime:
        """The instant after which no schedule is due any more."""
        return self.begin + timedelta(hours=HOURS, minutes=15)


def random_script(chance: random.Random) -> Script:
    """A script of eight schedules and up to eight deeds."""
    zone, change = chance.choice(CLOCK_CHANGES)
    begin = datetime.fromisoformat(change) - timedelta(minutes=chance.choice((60, 120, 180)))
    planned = [_planned(chance, zone) for _number in range(8)]
    deeds = [_deed(chance) for _number in range(3)]
    for number, own in enumerate(planned):
        if own.columns.get("max_retries") == 0 and own.once is None:
            deeds += _changed(chance, number)
    return Script(begin, planned, sorted(deeds, key=lambda deed: deed.at))


def _planned(chance: random.Random, zone: str) -> Planned:
    times = {"schedule": chance.choice(CRONS), "timezone": chance.choice((zone, zone, zone, "UTC"))}
    kind = chance.choice(("certain", "retried", "retried", "alone", "once"))
    if kind == "once":
        return Planned("fail_once", {"retry_delay_ms": 120_000}, once=timedelta(minutes=30 * chance.randint(1, 8)))
    if kind == "certain":
        name, params = chance.choice(CERTAIN)
        return Planned(name, {**times, "max_retries": 0}, params)
    if kind == "alone":  # a retry waits for longer than half an hour, so that an occurrence is left out meanwhile
        own = {"overlap": "skip", "max_retries": 1, "retry_delay_ms": 2_520_000}
        return Planned(chance.choice(("fail", "fail_once")), {**times, **own})
    delay, multiplier = chance.choice((60, 90, 300, 600)) * 1000, chance.choice((1.0, 2.0, 1.5))
    own = {"max_retries": chance.randint(1, 3), "retry_delay_ms": delay, "retry_multiplier": multiplier}
    return Planned(chance.choice(FAILING), {**times, **own})


def _deed(chance: random.Random) -> Deed:
    delay = chance.choice((None, timedelta(minutes=45), timedelta(hours=1, minutes=20)))
    return Deed(_quarter(chance), handler=chance.choice(("noop", "gives_up")), delay=delay)


def _changed(chance: random.Random, schedule: int) -> list[Deed]:
    if chance.random() < 0.4:
        return [Deed(_quarter(chance), schedule, {"schedule": chance.choice(CRONS)})]
    first, second = sorted((_quarter(chance), _quarter(chance)))
    paused = Deed(first, schedule, {"status": False})
    return [paused] if first == second else [paused, Deed(second, schedule, {"status": True})]


def _quarter(chance: random.Random) -> timedelta:
    return timedelta(minutes=15 + 30 * chance.randint(0, 2 * HOURS - 1))


def make(script: Script) -> list[int | Scheduler]:
    """Make the schedules. Call it at the beginning."""
    made: list[int | Scheduler] = []
    for own in script.planned:
        worker = Worker.objects.get_or_create(name=f"tests.{own.handler}")[0]
        at = None if own.once is None else script.begin + own.once
        made.append(Scheduler.objects.create(worker=worker, params=own.params, date_time=at, **own.columns))
    return made


def do(deed: Deed, made: list[int | Scheduler]) -> None:
    """Do what the script says. Call it at the time of the deed. A run is added to `made` by its id."""
    if deed.schedule is None:
        made.append(run(f"tests.{deed.handler}", delay=deed.delay).id)
        return
    row = Scheduler.objects.get(pk=made[deed.schedule].pk)  # type: ignore[union-attr]
    for name, value in deed.columns.items():
        setattr(row, name, value)
    row.save()


def end(made: list[int | Scheduler]) -> None:
    """Let no schedule be due any more. Call it at the end."""
    for row in Scheduler.objects.filter(pk__in=[one.pk for one in made if isinstance(one, Scheduler)]):
        if row.schedule:
            row.schedule = RARE
            row.save()
