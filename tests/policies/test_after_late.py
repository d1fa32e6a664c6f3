"""The wait for a predecessor counts from when the run could first have started. What fails at its end counts, too."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.execution import after_runs
from scheduling.execution.after_runs import LATE
from scheduling.inbox.actions import discard
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.exclusions import cache
from tests.factories import CalendarFactory, SchedulerExecutionFactory
from tests.policies.after_world import FAILURE, HOUR, LONG_AGO, MINUTE, World, edge, last, schedule, words
from tests.support import NOON

pytestmark = pytest.mark.django_db

FRIDAY = datetime(2026, 3, 13, 12, tzinfo=UTC)
MONDAY = datetime(2026, 3, 16, tzinfo=UTC)
DAY = timedelta(days=1)


def states(row: Scheduler) -> list[str]:
    return list(SchedulerExecution.objects.filter(scheduler=row).order_by("pk").values_list("state", flat=True))


def wakes(row: Scheduler, at: datetime, nominal: datetime | None = None) -> None:
    """Let a producer look at the schedule at this time. It has had its times for a month."""
    Scheduler.objects.filter(pk=row.pk).update(next_run_at=at, next_nominal_at=nominal, planned_at=LONG_AGO)


@pytest.mark.parametrize("late", ["skip", "run"])
def test_runs_that_a_calendar_held_start_in_their_order(monkeypatch: pytest.MonkeyPatch, late: str) -> None:
    cache.clear()
    world = World(FRIDAY)
    monkeypatch.setattr(clock, "now", lambda: world.now)
    held = {"calendar": CalendarFactory(entries="sat,sun", timezone="UTC"), "on_excluded": "hold"}
    first = schedule(description="Load data", schedule="0 2 * * *", **held)
    second = schedule(schedule="0 8 * * *", after=first, after_late=late, **held)
    world.now = MONDAY
    world.claim()
    assert states(second) == ["skipped", "blocked"]
    world.start()
    world.now += 11 * HOUR
    world.sweep()
    assert states(second) == ["skipped", "blocked"]
    world.end(last(first))
    assert (states(second), words(second)) == (["skipped", "queued"], "")


def test_a_held_run_waits_from_the_end_of_the_hold_until_its_latest_time(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.clear()
    world = World(FRIDAY)
    monkeypatch.setattr(clock, "now", lambda: world.now)
    held = {"calendar": CalendarFactory(entries="sat,sun", timezone="UTC"), "on_excluded": "hold"}
    first = schedule(description="Load data", schedule="0 2 * * *", **held)
    second = schedule(schedule="0 8 * * *", after=first, after_within_seconds=3_600, **held)
    world.now = MONDAY
    world.claim()
    world.start()
    world.end(last(first), FAILURE)
    world.sweep(59)
    assert states(second) == ["skipped", "blocked"]
    world.sweep(1)
    assert states(second) == ["skipped", "skipped"]
    assert words(second).startswith("Not started in time: until 2026-03-16 01:00 UTC it waited for “Load data”")


def test_a_run_whose_start_is_spread_waits_from_this_start() -> None:
    world, first = World(NOON + 5 * HOUR), schedule(schedule="0 2 * * *")
    second = schedule(schedule="0 3 * * *", after=first, spread_seconds=86_400)
    nominal = NOON - 9 * HOUR
    wakes(first, nominal - HOUR)
    wakes(second, world.now, nominal)
    start = second.assigned().at(nominal)
    world.now = nominal
    world.claim()
    world.start()
    world.now = start
    wakes(second, start, nominal)
    world.claim()
    row = last(second)
    assert (row.scheduled_at, row.assigned_at, row.state) == (nominal, start, "blocked")
    world.now = start + 12 * HOUR - MINUTE
    world.sweep()
    assert states(second) == ["blocked"]
    world.sweep(1)
    assert states(second) == ["skipped"]


def test_a_run_that_is_claimed_late_waits_from_its_claim() -> None:
    world, first = World(NOON + 4 * HOUR), schedule(schedule="0 2 * * *")
    second = schedule(schedule="0 3 * * *", after=first)
    wakes(first, NOON - 10 * HOUR)
    wakes(second, NOON - 9 * HOUR)
    world.claim()  # no producer has run for 13 hours
    assert states(second) == ["blocked"]
    assert last(second).wake_at - world.now == timedelta(seconds=15)
    world.start()
    world.end(last(first))
    assert states(second) == ["queued"]


def test_all_missed_runs_that_are_caught_up_wait_for_their_own_predecessors() -> None:
    every = {"missed_runs": "all", "missed_within_seconds": 10 * 86_400}
    world, first = World(NOON), schedule(schedule="0 2 * * *", **every)
    second = schedule(schedule="0 3 * * *", after=first, **every)
    wakes(first, NOON - 10 * HOUR - 2 * DAY)
    wakes(second, NOON - 9 * HOUR - 2 * DAY)
    world.claim()
    assert (states(first), states(second)) == (["queued"] * 3, ["blocked"] * 3)
    world.start()
    for row in SchedulerExecution.objects.filter(scheduler=first):
        world.end(row)
    world.start()
    assert states(second) == ["running"] * 3


def test_an_unreadable_predecessor_may_be_mended_from_the_claim_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from scheduling.policies.after import Judge

    world, first = World(NOON + 4 * HOUR), schedule(schedule="0 2 * * *")
    second = schedule(schedule="0 3 * * *", after=first)
    wakes(first, NOON + DAY)
    wakes(second, NOON - 9 * HOUR)
    read = Judge.schedule

    def unreadable(judge: Judge, pk: int) -> Scheduler | None:
        if pk == first.pk:
            raise ValueError("a row that cannot be read")
        return read(judge, pk)

    monkeypatch.setattr(Judge, "schedule", unreadable)
    monkeypatch.setattr("scheduling.policies.after.check_predecessor", lambda *args: None)
    world.claim()
    assert states(second) == ["blocked"]
    assert "its row cannot be read" in words(second)


def test_runs_that_fail_because_their_predecessor_is_late_pause_their_schedule() -> None:
    columns = {"after_late": "fail", "after_within_seconds": 600, "pause_after_failures": 2}
    world, (first, second) = World(), edge(**columns)
    for paused in (False, True):
        world.claim(first, second)
        world.sweep(10)
        assert last(second).error_class == LATE
        second.refresh_from_db()
        assert second.status is not paused
        world.now += HOUR - 10 * MINUTE
    assert (second.paused_for, second.pause_reason) == (
        "failures", f"2 failures in a row; the last is execution {last(second).pk}.",
    )  # fmt: skip


def test_a_process_that_dies_between_a_late_failure_and_the_pause_loses_neither(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The failure and the pause are one transaction. There is no attempt whose tally could tell a producer of it."""
    world, (first, second) = World(), edge(after_late="fail", after_within_seconds=600, pause_after_failures=1)
    world.claim(first, second)

    def killed(*_args: Any) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(after_runs, "pause_failing", killed)
    with pytest.raises(KeyboardInterrupt):
        world.sweep(10)
    monkeypatch.undo()
    assert states(second) == ["blocked"]
    world.sweep()
    assert states(second) == ["failed"]
    second.refresh_from_db()
    assert second.paused_for == "failures"


@pytest.mark.parametrize("between", ["succeeded", None])
def test_a_late_failure_counts_in_a_row_with_other_runs(between: str | None) -> None:
    world, (first, second) = World(), edge(after_late="fail", after_within_seconds=600, pause_after_failures=2)
    world.claim(first, second)
    world.sweep(10)
    if between is not None:
        SchedulerExecutionFactory(scheduler=second, state=between, finished_at=world.now)
    world.now += HOUR - 10 * MINUTE
    world.claim(first, second)
    world.start()
    world.end(last(first))
    world.start()
    world.end(last(second), FAILURE)
    second.refresh_from_db()
    assert second.paused_for == ("failures" if between is None else "")


def test_a_discard_of_a_late_failure_is_no_new_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    world, (first, second) = World(), edge(after_late="fail", after_within_seconds=600, pause_after_failures=2)
    monkeypatch.setattr(clock, "now", lambda: world.now)
    for _ in range(2):
        world.claim(first, second)
        world.sweep(10)
        world.now += HOUR - 10 * MINUTE
    second.refresh_from_db()
    assert second.paused_for == "failures"
    second.status = True
    second.save()
    world.now += MINUTE
    failed = SchedulerExecution.objects.filter(scheduler=second, state="failed")
    discard(list(failed.values_list("pk", flat=True)), "ann", "known", world.now)
    world.now += HOUR
    world.claim(first, second)
    world.sweep(10)
    assert last(second).error_class == LATE
    second.refresh_from_db()
    assert second.status
