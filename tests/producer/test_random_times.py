"""Each instant of a schedule is on record once, although its times, its bounds and its date are edited meanwhile."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from django.utils import timezone as clock

from scheduling.models import Scheduler, SchedulerExecution
from scheduling.producer.sweeps import plan_stale
from tests.factories import SchedulerFactory
from tests.hostile import fuzz
from tests.producer.producer_turns import finish, look
from tests.support import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.database]

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
ROUNDS = int(os.environ.get("TEST_EDIT_ROUNDS", "12"))
STEPS = 30
EVERY = (1, 3, 7, 20)


class Times(NamedTuple):
    """When a schedule is due: each `every` minutes of an hour within bounds, or at `date`.

    Args:
        since: what is due later is due by these times.
    """

    since: datetime
    every: int
    date: datetime | None
    begin: datetime | None
    end: datetime | None

    def instants(self, until: datetime) -> Iterator[datetime]:
        """The instants in (since, until]."""
        if self.date is not None:
            yield from [self.date] if self.since < self.date <= until else []
            return
        at = NOON
        while at <= until:
            inside = (self.begin or at) <= at <= (self.end or at)
            if at > self.since and at.minute % self.every == 0 and inside:
                yield at
            at += MINUTE


class Story:
    """A schedule, and what has happened to it."""

    def __init__(self, pick: random.Random) -> None:
        self.pick, self.now = pick, NOON + SECOND / 2
        self.told: list[str] = []
        self.times: list[Times] = []
        self.loaded: Scheduler | None = None
        """The schedule as another user has loaded it some time ago."""

    def begin(self) -> None:
        every = self.pick.choice(EVERY)
        row = SchedulerFactory(schedule=f"*/{every} * * * *", timezone="UTC", params={})
        self.note(row.schedule)

    def note(self, what: str) -> None:
        row = Scheduler.objects.get()
        every = int(row.schedule.split()[0][2:]) if row.schedule else 0
        self.times.append(Times(self.now, every, row.date_time, row.active_from, row.active_until))
        self.told.append(f"{self.now:%H:%M:%S.%f} {what}")

    def columns(self) -> dict[str, Any]:
        """What an edit changes."""
        pick, row, whole = self.pick, Scheduler.objects.get(), self.now.replace(second=0, microsecond=0)
        later = whole + pick.choice([1, 3, 10, 30]) * MINUTE
        if row.date_time is not None:
            every = {"schedule": f"*/{pick.choice(EVERY)} * * * *", "date_time": None, "status": True}
            other = {"date_time": later, "status": True}
            return pick.choice([every, other, {"status": not row.status} if row.date_time > self.now else other])
        if pick.random() < 0.2:
            plain = {"spread_seconds": None, "active_from": None, "active_until": None, "missed_runs": "latest"}
            return {"schedule": "", "date_time": later, "status": True, **plain}
        begin = pick.choice([None, whole + pick.choice([-5, -1, 0, 1, 3, 10]) * MINUTE])
        span = pick.choice([None, 0, 1, 3, 10, 40])
        rules: list[dict[str, Any]] = [
            {"status": not row.status},
            {"schedule": f"*/{pick.choice(EVERY)} * * * *"},
            {"active_from": begin, "active_until": None if span is None else (begin or whole) + span * MINUTE},
            {"missed_runs": pick.choice(["latest", "all", "none"])},
            {"spread_seconds": pick.choice([None, 120, 600])},
        ]
        return {name: value for rule in pick.sample(rules, pick.choice([1, 1, 2, 3])) for name, value in rule.items()}

    def edit(self) -> None:
        """One edit, in the way of the form or with plain SQL. A producer finds the latter at once."""
        columns = self.columns()
        if self.pick.random() < 0.5:
            Scheduler.objects.update(**columns)
            self.now += SECOND / 10
            plan_stale(self.now)
            self.note(f"plain SQL: {columns}")
            return
        row, self.loaded = self.loaded, None
        if row is None or row.date_time is not None or "date_time" in columns or self.pick.random() < 0.5:
            row = Scheduler.objects.get()
        begin, end = columns.get("active_from", row.active_from), columns.get("active_until", row.active_until)
        if begin is not None and end is not None and end < begin:
            return
        for name, value in columns.items():
            setattr(row, name, value)
        row.save()
        stale = Scheduler.objects.get().times_changed()
        self.note(f"form: {columns}, of {row.schedule!r} from {row.active_from} to {row.active_until}, stale: {stale}")
        if self.pick.random() < 0.3:
            self.loaded = Scheduler.objects.get()

    def end(self) -> None:
        """Put everything on record: by the present times, and then by a pause."""
        self.now += 45 * MINUTE
        finish(self.now)
        finish(self.now)
        plain = {"spread_seconds": None, "date_time": None, "active_from": None, "active_until": None, "status": True}
        for columns in ({"schedule": "*/7 * * * *", **plain}, {"status": False}, {"status": True}):
            Scheduler.objects.update(**columns)
            finish(self.now)
            self.note(f"at the end: {columns}")
            self.now += 15 * MINUTE
            finish(self.now)
        Scheduler.objects.update(status=False)
        finish(self.now)
        Scheduler.objects.update(status=True)
        finish(self.now)

    def due(self) -> list[datetime]:
        edges = [*(times.since for times in self.times), self.now]
        spans = zip(self.times, pairwise(edges), strict=True)
        return [at for times, (_begin, end) in spans for at in times.instants(end)]


@pytest.mark.long
def test_each_instant_is_on_record_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for number, pick in enumerate(random.Random(f"{fuzz.choose_seed()} {n}") for n in range(ROUNDS)):
        SchedulerExecution.objects.all().delete()
        Scheduler.objects.all().delete()
        story = Story(pick)
        monkeypatch.setattr(clock, "now", lambda story=story: story.now)
        story.begin()
        for _step in range(STEPS):
            story.now += pick.choice([1, 2, 5, 11, 31]) * MINUTE
            for _edit in range(pick.choice([0, 0, 1, 1, 2])):
                story.edit()
            if pick.random() < 0.6:
                # A clock that is behind was read before the edit, or is that of another host.
                at = story.now + pick.choice([1, 1, 1, -1, -20, -50]) * SECOND
                story.told.append(f"{at:%H:%M:%S.%f} {look(pick, at)}")
        story.end()
        due, made = story.due(), list(SchedulerExecution.objects.order_by("scheduled_at", "pk"))
        counted = sum(max(row.missed, 1) if row.state == "skipped" else 1 for row in made)
        said = f"seed {fuzz.choose_seed()}, round {number}: {counted} instants are on record, {len(due)} were due"
        rows = [f"{row.scheduled_at:%H:%M} {row.state} {row.missed} {row.executed_at} {row.reason}" for row in made]
        assert counted == len(due), "\n".join([said, *story.told, *rows])
        assert {row.scheduled_at for row in made} <= set(due), "\n".join([said, *story.told, *rows])
