"""Each instant of a schedule with a calendar is on record once, whatever is edited, paused and resumed meanwhile."""

from __future__ import annotations

import os
import random
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.models import Calendar, Scheduler, SchedulerExecution
from scheduling.producer import changed_calendars
from tests.factories import CalendarFactory, SchedulerFactory
from tests.hostile import fuzz
from tests.producer.producer_turns import finish, look
from tests.support import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.database]

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
ROUNDS = int(os.environ.get("TEST_EDIT_ROUNDS", "12"))
STEPS = 40


def entries(pick: random.Random) -> str:
    """Windows of the afternoon, some of which follow each other."""
    minutes = sorted(pick.sample(range(0, 600, 5), 2 * pick.randrange(5)))
    return "\n".join(
        f"2026-03-10 {NOON + a * MINUTE:%H:%M}-{NOON + b * MINUTE:%H:%M} window {a}"
        for a, b in zip(minutes[::2], minutes[1::2], strict=True)
    )


def change(pick: random.Random, now: datetime) -> str:
    """One random edit, in the way of the form or with plain SQL."""
    by_sql = pick.random() < 0.5
    kind = pick.choice(["lines", "lines", "status", "rules", "calendar"])
    row: Any = Calendar.objects.get() if kind == "lines" else Scheduler.objects.get()
    columns: dict[str, Any] = {
        "lines": {"entries": entries(pick)},
        "status": {"status": not getattr(row, "status", True)},
        "rules": {"spread_seconds": pick.choice([None, 120, 600])},
        "calendar": {"calendar_id": pick.choice([None, *Calendar.objects.values_list("pk", flat=True)])},
    }[kind]
    if by_sql:
        type(row).objects.filter(pk=row.pk).update(**columns)
    else:
        for name, value in columns.items():
            setattr(row, name, value)
        row.save()
    return f"{now:%H:%M} {columns} by_sql={by_sql}"


@pytest.mark.long
def test_each_instant_is_on_record_once(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [NOON]
    monkeypatch.setattr(clock, "now", lambda: now[0])
    changed_calendars._failed.clear()
    for number, pick in enumerate(random.Random(f"{fuzz.choose_seed()} {n}") for n in range(ROUNDS)):
        SchedulerExecution.objects.all().delete()
        Scheduler.objects.all().delete()
        Calendar.objects.all().delete()
        now[0] = NOON
        named = CalendarFactory(timezone="UTC", entries=entries(pick))
        every = pick.choice([3, 7, 20])
        row = SchedulerFactory(
            schedule=f"*/{every} * * * *", timezone="UTC", calendar=named, params={},
            on_excluded=pick.choice(["hold", "hold", "skip"]), missed_runs=pick.choice(["latest", "all", "none"]),
        )  # fmt: skip
        story = [str({"every": every, "on": row.on_excluded, "missed": row.missed_runs, "entries": named.entries})]
        for _ in range(STEPS):
            now[0] += pick.choice([1, 2, 5, 11, 31]) * MINUTE
            for _ in range(pick.choice([0, 0, 1, 1, 2])):
                story.append(change(pick, now[0]))
            if pick.random() < 0.6:
                # A clock that is behind was read before the edit, or is that of another host.
                at = now[0] + pick.choice([1, 1, 1, -1, -20, -50]) * SECOND
                story.append(f"{at:%H:%M:%S} {look(pick, at)}")
        now[0] += 5 * MINUTE
        finish(now[0])
        Scheduler.objects.update(status=False)
        finish(now[0])
        Scheduler.objects.update(status=True)
        finish(now[0])
        Scheduler.objects.update(calendar=None, spread_seconds=None)
        look(pick, now[0])
        now[0] += every * MINUTE * 2
        finish(now[0])
        last = now[0]
        due = [at for n in range(1, 60 * 24) if (at := NOON + n * MINUTE).minute % every == 0 and at <= last]
        made = SchedulerExecution.objects.order_by("scheduled_at")
        counted = sum(max(one.missed, 1) if one.state == "skipped" else 1 for one in made)
        told = [f"{one.scheduled_at:%H:%M} {one.state} {one.missed} {one.reason}" for one in made]
        found = f"seed {fuzz.choose_seed()}, round {number}: {counted} instants are on record, {len(due)} were due"
        assert counted == len(due), "\n".join([found, *story, *told])
