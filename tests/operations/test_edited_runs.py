"""A preview tells the runs that take place after a save, also if an occurrence waits for its start."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduling.execution.claim import claim_due
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.operations import schedules, site_load
from scheduling.operations.actor import Actor
from scheduling.operations.time_machine import preview, runs_of
from tests.factories import CalendarFactory, SchedulerFactory, UserFactory
from tests.support import NOON, Clock

pytestmark = pytest.mark.django_db

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
FRIDAY = NOON + 3 * DAY
"""2026-03-13, 12:00."""
SUNDAY = FRIDAY + 2 * DAY
MONDAY = SUNDAY + HOUR * 12
"""The end of the hold of the weekend."""


@pytest.fixture
def actor() -> Actor:
    return Actor(UserFactory(superuser=True))


@pytest.fixture(autouse=True)
def fresh_look() -> Iterator[None]:
    site_load.forget()
    yield
    site_load.forget()


def held(at: Clock) -> tuple[Scheduler, datetime]:
    """On Sunday, the runs of 8:00 on Saturday and on Sunday are held."""
    at(FRIDAY)
    weekend = CalendarFactory(entries="sat,sun", timezone="UTC")
    row = SchedulerFactory(schedule="0 8 * * *", timezone="UTC", calendar=weekend, on_excluded="hold")
    row.refresh_from_db()
    return row, at(SUNDAY)


def spread(at: Clock) -> tuple[Scheduler, datetime]:
    """The run of noon waits for its start, in the afternoon or later."""
    at(NOON - HOUR)
    while True:
        row = SchedulerFactory(schedule="0 12 * * *", timezone="UTC", spread_seconds=80_000)
        if site_load.offset_of(row.pk, 80_000, False) > 2 * HOUR:
            break
        row.delete()
    row.refresh_from_db()
    return row, at(NOON + HOUR)


EDITS: list[dict[str, Any]] = [
    {},
    {"description": "words"},
    {"schedule": "30 8 * * *"},
    {"schedule": "0 15 * * *"},
    {"timezone": "Europe/Madrid"},
    {"missed_runs": "none"},
    {"missed_runs": "all"},
    {"on_excluded": "skip"},
    {"calendar": None},
    {"calendar": None, "on_excluded": "skip"},
    {"spread_seconds": 60},
    {"spread_seconds": None},
    {"status": False},
    {"max_runs": 3},
    {"schedule": "", "date_time": "2026-03-17T08:00:00Z", "spread_seconds": None},
]


@pytest.mark.any_database
@pytest.mark.parametrize("values", EDITS, ids=str)
@pytest.mark.parametrize("waits", [held, spread])
def test_a_preview_tells_what_takes_place_after_the_save(
    at: Clock, actor: Actor, waits: Callable[[Clock], tuple[Scheduler, datetime]], values: dict[str, Any]
) -> None:
    row, now = waits(at)
    told = preview(actor, row.pk, values, now).after
    schedules.change(actor, row.pk, values)
    then = runs_of(Scheduler.objects.get(pk=row.pk), now)
    claim_due(now, embedded=True)
    started = SchedulerExecution.objects.exclude(state="skipped").order_by("scheduled_at")
    assert [one for one in told if one <= now] == [run.assigned_at or run.scheduled_at for run in started]
    told, then = ([one for one in runs if one > now] for runs in (told, then))
    assert told == then[: len(told)]  # at most 20 are told, with what starts at once
    assert len(told) >= min(len(then), 19)


def test_an_edit_of_the_times_ends_a_hold(at: Clock, actor: Actor) -> None:
    row, now = held(at)
    found = preview(actor, row.pk, {"schedule": "30 8 * * *"}, now)
    assert found.before[:2] == [MONDAY, MONDAY + 8 * HOUR]
    assert found.after[0] == MONDAY + 8.5 * HOUR
    assert found.load.busiest is not None
    assert found.load.busiest.at == MONDAY + 8.5 * HOUR  # nothing starts at the end of the hold
    assert preview(actor, row.pk, {"calendar": None}, now).after[0] == MONDAY + 8 * HOUR


def test_without_a_change_all_runs_are_the_same(at: Clock, actor: Actor) -> None:
    for waits in (held, spread):
        row, now = waits(at)
        assert {one.mark for one in preview(actor, row.pk, {"description": "words"}, now).changes} == {"same"}
