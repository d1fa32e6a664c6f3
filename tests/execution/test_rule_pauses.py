"""A schedule is paused after a number of runs, and after failures in a row."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from scheduling.broker.database import DatabaseBroker
from scheduling.execution.claim import claim_due
from scheduling.execution.rule_pauses import pause_failing
from scheduling.execution.run_now import run_now
from scheduling.models import Attempt, Scheduler, ScheduleRevision, SchedulerExecution
from scheduling.models.tally_mark import ONLY
from scheduling.producer.sweeps import sweep
from tests.factories import (
    AttemptFactory,
    GroupFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    TallyMarkFactory,
    due,
)
from tests.support import NOON, at_once

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
BROKER = DatabaseBroker()


def bounded(**columns: Any) -> Scheduler:
    row: Scheduler = SchedulerFactory(**{"schedule": "0 * * * *", "params": {}, **columns})
    Scheduler.objects.filter(pk=row.pk).update(planned_at=NOON)
    row.refresh_from_db()
    return row


def occur(row: Scheduler, number: float) -> int:
    """Let the occurrence `number` hours after noon fall due. Returns how many were claimed."""
    due(row, NOON + number * HOUR)
    return len(claim_due(NOON + number * HOUR, embedded=True).claimed)


def test_a_schedule_is_paused_after_its_last_run() -> None:
    row = bounded(max_runs=2)
    assert (occur(row, 0), occur(row, 1)) == (1, 1)
    row.refresh_from_db()
    assert (row.status, row.pause_reason, row.paused_by, row.paused_for) == (False, "It has run 2 times.", "", "runs")
    assert (row.next_run_at, row.paused_at, row.planned_status) == (None, NOON + HOUR, False)
    assert claim_due(NOON + 2 * HOUR, embedded=True).claimed == []


def test_what_does_not_run_and_what_is_asked_for_does_not_count() -> None:
    row = bounded(max_runs=2, overlap="skip")
    assert occur(row, 0) == 1
    assert occur(row, 1) == 0  # left out
    SchedulerExecution.objects.filter(state="queued").update(state="succeeded")
    assert run_now(row, BROKER).state == "queued"
    SchedulerExecution.objects.filter(state="queued").update(state="succeeded")
    row.refresh_from_db()
    assert (row.status, row.runs_counted) == (True, 1)
    assert occur(row, 2) == 1
    row.refresh_from_db()
    assert not row.status


def test_an_edit_of_the_number_and_a_resumption_after_the_last_run_begin_the_count_anew() -> None:
    row = bounded(max_runs=3)
    assert occur(row, 0) == 1
    row.refresh_from_db()
    row.max_runs = 2
    row.save()
    assert (occur(row, 1), occur(row, 2)) == (1, 1)
    row.refresh_from_db()
    assert not row.status
    row.status = True
    row.save()
    assert (row.paused_for, row.pause_reason) == ("", "")
    assert occur(row, 3.5) == 1  # the resumption has recorded the full hours
    row.refresh_from_db()
    assert (row.status, row.runs_counted) == (True, 1)


def test_a_save_of_a_form_keeps_the_count() -> None:
    row = bounded(max_runs=3)
    loaded = Scheduler.objects.get(pk=row.pk)
    occur(row, 0)
    loaded.description = "renamed"
    loaded.save()
    loaded.schedule = "30 * * * *"
    loaded.save()
    assert Scheduler.objects.values_list("runs_counted", "counted_for").get() == (1, 3)


@pytest.mark.django_db(transaction=True)
def test_exactly_so_many_run_with_many_producers() -> None:
    row = bounded(max_runs=3)
    for number in range(6):
        instant = NOON + number * HOUR
        Scheduler.objects.filter(pk=row.pk, status=True).update(next_run_at=instant)
        at_once([lambda instant=instant: claim_due(instant, embedded=True)] * 4)
        claim_due(instant, embedded=True)
    assert SchedulerExecution.objects.count() == 3


def fail(row: Scheduler, number: int, state: str = "failed", **columns: Any) -> SchedulerExecution:
    """Record a run that ended `number` minutes after noon."""
    ended = NOON + timedelta(minutes=number)
    run: SchedulerExecution = SchedulerExecutionFactory(
        scheduler=row,
        **{"state": state, "finished_at": ended, "error_class": "KeyError", "error_message": "x\ny"} | columns,
    )
    AttemptFactory(execution=run, outcome="succeeded" if state == "succeeded" else "failed", finished_at=ended)
    return run


def test_failures_in_a_row_pause_a_schedule() -> None:
    row = bounded(pause_after_failures=2)
    fail(row, 0)
    assert pause_failing([row.pk], NOON) == 0
    fail(row, 1, "succeeded")
    fail(row, 2)
    fail(row, 3, "cancelled")
    fail(row, 4, "skipped")
    assert pause_failing([row.pk], NOON) == 0
    last = fail(row, 5, "discarded")
    assert pause_failing([row.pk], NOON + HOUR) == 1
    row.refresh_from_db()
    assert (row.status, row.paused_for, row.paused_by) == (False, "failures", "")
    assert row.pause_reason == f"2 failures in a row; the last is execution {last.pk}."
    assert pause_failing([row.pk], NOON + HOUR) == 0


def test_a_resumed_schedule_counts_anew() -> None:
    row = bounded(pause_after_failures=2)
    failures = [fail(row, number) for number in range(2)]
    assert pause_failing([row.pk], NOON) == 1
    row.refresh_from_db()
    row.status = True
    row.save()
    Scheduler.objects.update(failures_since=NOON + timedelta(minutes=5))
    assert pause_failing([row.pk], NOON) == 0
    # A discard is no new failure.
    SchedulerExecution.objects.filter(pk=failures[1].pk).update(state="discarded", finished_at=NOON + HOUR)
    fail(row, 10)
    assert pause_failing([row.pk], NOON) == 0
    fail(row, 11)
    assert pause_failing([row.pk], NOON) == 1


def test_plain_sql_that_resumes_a_schedule_begins_the_count_anew() -> None:
    row = bounded(pause_after_failures=1)
    fail(row, 0)
    assert pause_failing([row.pk], NOON) == 1
    Scheduler.objects.update(status=True)
    sweep(BROKER, NOON + HOUR)
    row.refresh_from_db()
    assert (row.paused_for, row.failures_since) == ("", NOON + HOUR)
    assert pause_failing([row.pk], NOON) == 0


def test_a_failure_right_after_a_resumption_by_plain_sql_loses_nothing_of_the_pause() -> None:
    row = bounded(pause_after_failures=1)
    fail(row, 0)
    assert pause_failing([row.pk], NOON) == 1
    Scheduler.objects.update(status=True)
    fail(row, 150)  # it ran before the pause, or by "Run now"
    assert pause_failing([row.pk], NOON + 2.5 * HOUR) == 0  # no sweep has seen the resumption yet
    sweep(BROKER, NOON + 2.6 * HOUR)
    assert SchedulerExecution.objects.get(state="skipped").missed == 2
    row.refresh_from_db()
    assert (row.status, row.paused_at) == (True, None)
    fail(row, 180)
    assert pause_failing([row.pk], NOON + 3 * HOUR) == 1


def test_an_occurrence_that_is_due_is_recorded_as_skipped() -> None:
    row = due(bounded(pause_after_failures=1), NOON)
    fail(row, 0)
    assert pause_failing([row.pk], NOON + HOUR) == 1
    assert claim_due(NOON + HOUR, embedded=True).skipped == 1
    assert SchedulerExecution.objects.filter(state="skipped").get().reason.startswith("The schedule was paused after")


def test_what_was_due_without_a_producer_when_a_rule_paused_is_counted_when_it_is_resumed() -> None:
    row = due(bounded(pause_after_failures=1), NOON)
    fail(row, 0)
    assert pause_failing([row.pk], NOON + 2.5 * HOUR) == 1
    assert claim_due(NOON + 3.5 * HOUR, embedded=True).skipped == 1
    Scheduler.objects.update(status=True)
    sweep(BROKER, NOON + 4.5 * HOUR)
    found = SchedulerExecution.objects.filter(state="skipped").order_by("scheduled_at")
    assert [(run.scheduled_at, run.missed) for run in found] == [(NOON, 0), (NOON + HOUR, 4)]


def test_the_reason_tells_no_error_because_another_group_may_read_it() -> None:
    """The schedule may get another group, also by plain SQL. The reason stays, and its history has it, too."""
    row = bounded(pause_after_failures=1)
    fail(row, 0, group=GroupFactory(), error_class="Secret", error_message="the password is swordfish")
    pause_failing([row.pk], NOON)
    run = SchedulerExecution.objects.get()
    row.refresh_from_db()
    assert row.pause_reason == f"1 failure; the last is execution {run.pk}."
    said = [str(found) for found in ScheduleRevision.objects.values()]
    assert said
    assert not any("swordfish" in one or "Secret" in one for one in said)


def test_a_failure_whose_consumer_has_died_pauses_when_it_is_tallied() -> None:
    row = bounded(pause_after_failures=1)
    TallyMarkFactory(pk=ONLY)
    fail(row, 0)
    for minutes in (1, 3, 5):
        sweep(BROKER, NOON + timedelta(minutes=minutes))
    assert Attempt.objects.count() == 1
    row.refresh_from_db()
    assert row.paused_for == "failures"


@pytest.mark.parametrize(
    ("columns", "column"),
    [
        ({"start_within_seconds": 0}, "start_within_seconds"),
        ({"start_within_seconds": 62_135_596_801}, "start_within_seconds"),
        ({"max_runs": 0}, "max_runs"),
        ({"max_runs": 10**9 + 1}, "max_runs"),
        ({"pause_after_failures": 101}, "pause_after_failures"),
        ({"stay_alive": True, "start_within_seconds": 60}, "start_within_seconds"),
        ({"stay_alive": True, "pause_after_failures": 3}, "pause_after_failures"),
        ({"schedule": "", "date_time": NOON + timedelta(days=3650), "max_runs": 3}, "max_runs"),
    ],
)
def test_bounds_that_cannot_be_used_are_refused_at_their_field(columns: dict[str, Any], column: str) -> None:
    row = bounded()
    for name, value in columns.items():
        setattr(row, name, value)
    with pytest.raises(ValidationError) as refused:
        row.full_clean()
    assert list(refused.value.message_dict) == [column]
    with pytest.raises(ValidationError):
        row.save()


def test_bounds_that_plain_sql_has_stored_count_as_none() -> None:
    row = bounded()
    Scheduler.objects.update(max_runs=0, pause_after_failures=0)
    assert (occur(row, 0), occur(row, 1)) == (1, 1)
    fail(row, 0)
    assert pause_failing([row.pk], NOON) == 0
    row.refresh_from_db()
    assert row.status


def test_a_row_that_was_loaded_before_its_pause_does_not_resume_it() -> None:
    row = bounded(max_runs=1)
    loaded = Scheduler.objects.get(pk=row.pk)
    assert occur(row, 0) == 1
    loaded.description = "Another text"
    loaded.save()
    sweep(BROKER, NOON + HOUR)
    row.refresh_from_db()
    assert (row.description, row.status, row.pause_reason) == ("Another text", False, "It has run once.")
    assert claim_due(NOON + 2 * HOUR, embedded=True).claimed == []


def test_a_save_may_take_back_what_plain_sql_has_changed() -> None:
    row = bounded()
    Scheduler.objects.filter(pk=row.pk).update(status=False, pause_reason="by hand")
    row.refresh_from_db()
    row.status = True
    row.save()
    row.refresh_from_db()
    assert (row.status, row.pause_reason) == (True, "")


def test_a_failure_that_plain_sql_has_written_counts_from_its_claim() -> None:
    row = bounded(pause_after_failures=1)
    Scheduler.objects.update(failures_since=NOON)
    run = SchedulerExecutionFactory(scheduler=row, state="failed", executed_at=NOON - HOUR)
    SchedulerExecution.objects.filter(pk=run.pk).update(finished_at=None)
    assert pause_failing([row.pk], NOON + HOUR) == 0
    SchedulerExecution.objects.filter(pk=run.pk).update(executed_at=NOON + HOUR)
    assert pause_failing([row.pk], NOON + HOUR) == 1
