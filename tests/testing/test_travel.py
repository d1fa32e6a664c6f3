"""`travel` lets schedules and retries fall due on a simulated clock, in the order of their instants."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import timezone
from pydantic import BaseModel

from scheduling.api import run, status
from scheduling.handlers import Run, worker
from scheduling.models import Attempt, Scheduler, SchedulerExecution
from scheduling.testing import Clock, RunOutcome, travel
from tests.factories import SchedulerFactory

pytestmark = pytest.mark.django_db

BERLIN = ZoneInfo("Europe/Berlin")


def instants(found: list[RunOutcome]) -> list[str]:
    return [f"{ran.scheduled_at.astimezone(BERLIN):%d %H:%M %Z}" for ran in found]


def test_schedules_run_at_their_instants_over_a_clock_change() -> None:
    with travel("2026-03-28 00:00", tz="Europe/Berlin") as clock:
        SchedulerFactory(schedule="30 2 * * *", timezone="Europe/Berlin")
        found = clock.forward(days=3)
        assert clock.now == datetime(2026, 3, 30, 23, 0, tzinfo=UTC)
    # 02:30 does not exist on the 29th: the run is made at the first instant after the gap.
    assert instants(found) == ["28 02:30 CET", "29 03:00 CEST", "30 02:30 CEST"]
    row = SchedulerExecution.objects.get(pk=found[0].execution_id)
    assert row.executed_at == row.started_at == row.finished_at == row.scheduled_at


def test_runs_are_in_the_order_of_their_instants_with_their_retries() -> None:
    with travel("2026-03-10T12:00:00Z") as clock:
        SchedulerFactory(schedule="0 13 * * *", timezone="UTC", handler="tests.fail")
        SchedulerFactory(schedule="0 13,14 * * *", timezone="UTC", handler="tests.noop")
        made = run("tests.never_again", delay=3600 + 1.5)
        found = clock.forward(hours=2, raise_errors=False)
        assert status(made.id).state == "failed"
    assert [(ran.handler, ran.attempt) for ran in found] == [
        ("tests.fail", 1), ("tests.noop", 1), ("tests.fail", 2), ("tests.never_again", 1), ("tests.fail", 3),
        ("tests.noop", 1),
    ]  # fmt: skip
    starts = Attempt.objects.filter(execution=found[0].execution_id).order_by("number")
    begin = datetime(2026, 3, 10, 13, tzinfo=UTC)
    assert [row.started_at - begin for row in starts] == [timedelta(seconds=seconds) for seconds in (0, 1, 2)]


@pytest.mark.usefixtures("own_handlers")
def test_handlers_see_the_simulated_clock() -> None:
    @worker("testing.clock")
    def tell(params: BaseModel, run: Run) -> str:
        return timezone.now().isoformat()

    with travel(datetime(2030, 1, 1, tzinfo=UTC)) as clock:
        run("testing.clock", delay=timedelta(days=1, microseconds=7))
        (ran,) = clock.forward(to="2030-01-03T00:00:00+00:00")
        assert ran.result == "2030-01-02T00:00:00.000007+00:00"
        assert ran.lines == ()
        assert clock.forward(days=1) == []


def test_a_jump_is_as_if_all_processes_were_stopped() -> None:
    with travel("2026-03-10T00:30:00Z") as clock:
        SchedulerFactory(schedule="0 * * * *", timezone="UTC")
        clock.jump(timedelta(hours=5))
        found = clock.forward(hours=1)
    assert [ran.scheduled_at.hour for ran in found] == [5, 6]
    missed = SchedulerExecution.objects.get(state="skipped")
    assert (missed.missed, missed.scheduled_at.hour) == (4, 1)


def test_an_error_stops_the_clock_where_it_was_raised() -> None:
    with travel("2026-03-10T00:00:00Z") as clock:
        SchedulerFactory(schedule="0 6 * * *", timezone="UTC", handler="tests.fail")
        with pytest.raises(RuntimeError, match="attempt 1"):
            clock.forward(days=1)
        assert clock.now == datetime(2026, 3, 10, 6, tzinfo=UTC)


def test_a_schedule_that_plain_sql_changes_on_the_way_is_planned_again() -> None:
    with travel("2026-03-10T00:00:00Z") as clock:
        SchedulerFactory(schedule="0 6 * * *", timezone="UTC")
        SchedulerFactory(schedule="30 6 * * *", timezone="UTC")
        other = SchedulerFactory(schedule="0 20 * * *", timezone="UTC")
        clock.forward(hours=3)
        type(other).objects.filter(pk=other.pk).update(schedule="15 6 * * *")
        found = clock.forward(hours=4)
    assert [(ran.scheduled_at.hour, ran.scheduled_at.minute) for ran in found] == [(6, 0), (6, 15), (6, 30)]


@pytest.mark.usefixtures("own_handlers")
def test_a_schedule_that_a_handler_changes_with_plain_sql_is_planned_again() -> None:
    @worker("testing.change")
    def change(params: BaseModel, run: Run) -> None:
        Scheduler.objects.filter(schedule="0 20 * * *").update(schedule="15 6 * * *")

    with travel("2026-03-10T00:00:00Z") as clock:
        SchedulerFactory(schedule="0 20 * * *", timezone="UTC")
        run("testing.change", delay=3600)
        found = clock.forward(days=1)
    assert [(ran.handler, ran.scheduled_at.hour) for ran in found] == [("testing.change", 1), ("tests.noop", 6)]


def test_mistakes_are_named(cron_travel: Callable[[str], AbstractContextManager[Clock]]) -> None:
    with cron_travel("2026-03-10T00:00:00Z") as clock:
        with pytest.raises(ValueError, match="only to later instants"):
            clock.forward(to="2026-03-09T00:00:00Z")
        with pytest.raises(ValueError, match="Give either"):
            clock.forward()
        with pytest.raises(ValueError, match="Give either"):
            clock.jump(timedelta(1), days=1)
        assert timezone.now() == datetime(2026, 3, 10, tzinfo=UTC)


@pytest.fixture(autouse=True)
def real_clock_afterwards() -> Iterator[None]:
    """Check that the real clock is back after each test."""
    begin = timezone.now()
    yield
    assert timezone.now() >= begin


@pytest.mark.usefixtures("own_handlers")
def test_a_run_waits_for_the_schedule_before_it() -> None:
    tries: list[int] = []

    @worker("travel.load")
    def load(params: BaseModel, run: Run) -> None:
        tries.append(run.attempt)
        if len(tries) == 1:
            raise ValueError("the source is down")

    with travel("2026-03-10 00:00") as clock:
        first = SchedulerFactory(schedule="0 2 * * *", handler="travel.load", retry_delay_ms=600_000)
        second = SchedulerFactory(schedule="0 2 * * *", after=first)
        found = clock.forward(hours=12, raise_errors=False)
    assert [ran.scheduled_at.hour for ran in found] == [2, 2, 2]
    row = SchedulerExecution.objects.get(scheduler=second)
    assert row.started_at == SchedulerExecution.objects.get(scheduler=first).finished_at
    assert row.started_at == datetime(2026, 3, 10, 2, 10, tzinfo=UTC)
