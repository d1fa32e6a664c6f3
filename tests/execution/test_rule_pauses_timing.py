"""A pause by a rule, of a schedule whose runs are spread, or which has a calendar: nothing of its plan stays behind."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone as clock

from scheduling.execution.claim import claim_due
from scheduling.execution.rule_pauses import pause_failing
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.operations import time_machine
from scheduling.operations.actor import Actor
from scheduling.operations.why import why
from tests.factories import AttemptFactory, CalendarFactory, SchedulerExecutionFactory, SchedulerFactory, UserFactory
from tests.support import NOON

pytestmark = pytest.mark.django_db

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
LATER = NOON + 72 * HOUR


@pytest.fixture
def row(monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    """A schedule that is due at each full hour, with a start that is spread. It exists since 11:30."""
    monkeypatch.setattr(clock, "now", lambda: NOON - 30 * MINUTE)
    found = SchedulerFactory(schedule="0 * * * *", timezone="UTC", params={}, spread_seconds=3_000)
    while found.assigned().at(NOON) == NOON:
        found.delete()
        found = SchedulerFactory(schedule="0 * * * *", timezone="UTC", params={}, spread_seconds=3_000)
    monkeypatch.setattr(clock, "now", lambda: LATER)
    return found


def runs(row: Scheduler) -> list[tuple[str, int, int]]:
    """The state, the hour since noon and the number of each execution that its times have caused."""
    rows = SchedulerExecution.objects.filter(scheduler=row, trigger="cron").order_by("scheduled_at")
    return [(run.state, (run.scheduled_at - NOON) // HOUR, run.missed) for run in rows]


def fails(row: Scheduler) -> None:
    """Record a run by hand that has failed. The schedule is paused after one failure."""
    Scheduler.objects.filter(pk=row.pk).update(pause_after_failures=1)
    run = SchedulerExecutionFactory(scheduler=row, state="failed", trigger="manual", scheduled_at=NOON)
    AttemptFactory(execution=run, outcome="failed", finished_at=NOON)


def resumed(row: Scheduler) -> None:
    row.refresh_from_db()
    row.status = True
    row.save()


def said_of(row: Scheduler, hours: int) -> str:
    row.refresh_from_db()
    (answer,) = why(Actor(UserFactory(superuser=True)), row, f"{NOON + hours * HOUR:%Y-%m-%d %H:%M}", LATER)
    return answer.text


def test_a_schedule_that_has_run_often_enough_keeps_no_plan(row: Scheduler) -> None:
    Scheduler.objects.filter(pk=row.pk).update(max_runs=1)
    start = row.assigned().at(NOON)
    assert len(claim_due(start, embedded=True).claimed) == 1
    row.refresh_from_db()
    assert (row.status, row.next_run_at, row.next_nominal_at) == (False, None, None)
    for hours in (1, 30, 71):
        assert said_of(row, hours) == f"It did not run. It is paused since {start:%Y-%m-%d %H:%M} UTC: It has run once."
    actor = Actor(UserFactory(superuser=True))
    shown = time_machine.preview(actor, row.pk, {"status": True}, LATER)
    assert [str(one) for one in shown.after] == [str(row.assigned().at(LATER + HOUR))]
    resumed(row)
    assert runs(row) == [("queued", 0, 0), ("skipped", 1, 72)]


def test_a_run_that_waits_for_its_spread_start_is_decided_about_as_one_that_is_due(row: Scheduler) -> None:
    fails(row)
    paused = NOON + 1 * MINUTE if row.assigned().at(NOON) > NOON + MINUTE else NOON
    assert pause_failing([row.pk], paused) == 1
    row.refresh_from_db()
    assert (row.next_run_at, row.next_nominal_at) == (NOON, None)
    assert claim_due(paused + MINUTE, embedded=True).skipped == 1
    assert runs(row) == [("skipped", 0, 0)]
    assert said_of(row, 30).startswith("It did not run. It is paused since ")
    resumed(row)
    assert runs(row) == [("skipped", 0, 0), ("skipped", 1, 72)]


def test_a_resumption_before_a_producer_has_looked_loses_nothing(row: Scheduler) -> None:
    fails(row)
    assert pause_failing([row.pk], NOON) == 1
    resumed(row)
    assert runs(row) == [("skipped", 0, 73)]


def test_what_a_calendar_excluded_before_the_pause_is_on_record_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOON - 30 * MINUTE)
    calendar = CalendarFactory(entries="2026-03-10 11:00-15:00 window", timezone="UTC")
    row = SchedulerFactory(schedule="0 * * * *", timezone="UTC", params={}, calendar=calendar)
    row.refresh_from_db()
    assert (row.next_nominal_at, row.next_run_at) == (NOON, NOON + 3 * HOUR)
    monkeypatch.setattr(clock, "now", lambda: LATER)
    fails(row)
    assert pause_failing([row.pk], NOON + 2 * HOUR + MINUTE) == 1
    claim_due(NOON + 2 * HOUR + 2 * MINUTE, embedded=True)
    row.refresh_from_db()
    assert (row.next_run_at, row.next_nominal_at) == (None, None)
    resumed(row)
    assert runs(row) == [("skipped", 0, 0), ("skipped", 1, 72)]
