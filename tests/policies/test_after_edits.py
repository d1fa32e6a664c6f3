"""A schedule waits for the run of its predecessor that an edit has kept: it was due, and had not started."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.exclusions import cache
from tests.factories import CalendarFactory
from tests.policies.after_world import HOUR, LONG_AGO, MINUTE, World, last, schedule, words

pytestmark = pytest.mark.django_db

TWO, FIVE, SIX = (datetime(2026, 3, 10, hour, tzinfo=UTC) for hour in (2, 5, 6))


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A world at 5 o'clock, which is also the time of edits."""
    cache.clear()
    found = World(FIVE)
    monkeypatch.setattr(clock, "now", lambda: found.now)
    return found


def pending(start: datetime | None = None, **columns: Any) -> Scheduler:
    """Return a schedule whose run of 2 o'clock is due and not on record."""
    row = schedule(description="Load data", schedule="0 2 * * *", **columns)
    plan = {"next_run_at": start or TWO, "next_nominal_at": TWO if start else None}
    Scheduler.objects.filter(pk=row.pk).update(**plan, planned_at=LONG_AGO)
    return Scheduler.objects.get(pk=row.pk)


def late_spread(**columns: Any) -> Scheduler:
    """Return a schedule that is spread so far that its run of 2 o'clock starts after 7."""
    while (start := (row := pending(spread_seconds=86_400, **columns)).assigned().at(TWO)) <= SIX + HOUR:
        row.delete()
    Scheduler.objects.filter(pk=row.pk).update(next_run_at=start, next_nominal_at=TWO)
    return Scheduler.objects.get(pk=row.pk)


def edit(row: Scheduler, **columns: Any) -> None:
    for name, value in columns.items():
        setattr(row, name, value)
    row.save()
    row.refresh_from_db()
    assert row.planned_at == FIVE


def successor(first: Scheduler, world: World) -> Scheduler:
    """Let a schedule that waits for this one fall due at 6 o'clock."""
    row = schedule(schedule="0 6 * * *", after=first)
    world.now = SIX
    world.claim(row)
    return row


def states(row: Scheduler) -> list[str]:
    return list(SchedulerExecution.objects.filter(scheduler=row).order_by("pk").values_list("state", flat=True))


@pytest.mark.parametrize("edited", [{"spread_seconds": 80_000}, {"schedule": "30 2 * * *"}, {"missed_runs": "all"}])
def test_a_run_that_waits_for_its_spread_start_is_still_awaited_after_an_edit(
    world: World, edited: dict[str, Any]
) -> None:
    first = late_spread()
    edit(first, **edited)
    second = successor(first, world)
    assert states(second) == ["blocked"]
    assert "its run of 2026-03-10 02:00 UTC is due and has not been claimed yet" in words(second)
    world.now = TWO + 24 * HOUR - MINUTE
    Scheduler.objects.filter(pk=first.pk).update(next_run_at=world.now)
    Scheduler.objects.filter(pk=second.pk).update(after_within_seconds=2 * 86_400)
    world.claim()
    world.start()
    world.end(SchedulerExecution.objects.get(scheduler=first, scheduled_at=TWO))
    assert states(second)[0] != "blocked"


def test_a_run_that_no_producer_has_claimed_is_still_awaited_after_an_edit(world: World) -> None:
    first = pending()
    edit(first, schedule="0 3 * * *")
    second = successor(first, world)
    assert states(second) == ["blocked"]
    world.claim()
    assert last(first).scheduled_at == TWO
    world.start()
    world.end(last(first))
    assert states(second) == ["queued"]


def test_a_later_run_of_the_new_times_is_awaited_instead_of_the_kept_one(world: World) -> None:
    first = pending()
    edit(first, schedule="30 5 * * *")
    assert "its run of 2026-03-10 05:30 UTC" in words(successor(first, world))


def test_a_kept_run_that_the_new_calendar_leaves_out_counts_as_not_due(world: World) -> None:
    first = late_spread()
    edit(first, calendar=CalendarFactory(entries="2026-03-10", timezone="UTC"))
    assert states(successor(first, world)) == ["queued"]


def test_a_kept_run_of_the_day_before_does_not_count(world: World) -> None:
    first = pending()
    Scheduler.objects.filter(pk=first.pk).update(next_run_at=TWO - 24 * HOUR)
    first.refresh_from_db()
    Scheduler.objects.filter(pk=first.pk).update(schedule="0 7 * * *", planned_schedule="0 7 * * *", planned_at=FIVE)
    assert states(successor(first, world)) == ["queued"]
