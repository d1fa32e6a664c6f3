"""A schedule that runs alone never has two open executions, and each occurrence that it leaves out is counted."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction

from scheduling.broker.database import DatabaseBroker
from scheduling.execution.claim import claim_due
from scheduling.execution.run_now import run_now
from scheduling.models import Scheduler, SchedulerExecution
from tests.factories import ReportFactory, SchedulerFactory, due
from tests.policies.schedules import HOUR, OPEN, alone, occurrence, put, skips
from tests.support import NOON

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("state", OPEN)
def test_an_occurrence_is_left_out_while_an_execution_is_open(state: str) -> None:
    row = alone()
    (first,) = occurrence(row, 0)
    put(first, state)
    assert occurrence(row, 1) == []
    assert skips(row) == [(1, f"Left out, because execution {first.pk} was not over.")]
    row.refresh_from_db()
    assert row.next_run_at == NOON + 2 * HOUR


@pytest.mark.parametrize("state", ["succeeded", "failed", "cancelled", "discarded"])
def test_an_occurrence_runs_when_the_execution_before_it_is_over(state: str) -> None:
    row = alone()
    (first,) = occurrence(row, 0)
    put(first, state)
    assert len(occurrence(row, 1)) == 1
    assert skips(row) == []


def test_one_skipped_execution_counts_all_that_one_execution_has_left_out() -> None:
    row = alone()
    (first,) = occurrence(row, 0)
    assert [occurrence(row, number) for number in (1, 2, 3)] == [[], [], []]
    counting = SchedulerExecution.objects.get(state="skipped")
    last = NOON + 3 * HOUR
    assert (counting.scheduled_at, counting.executed_at, counting.finished_at) == (NOON + HOUR, last, last)
    put(first, "succeeded")
    (second,) = occurrence(row, 4)
    assert occurrence(row, 5) == []
    assert skips(row) == [
        (3, f"Left out, because execution {first.pk} was not over."),
        (1, f"Left out, because execution {second.pk} was not over."),
    ]


def test_a_skipped_execution_that_is_gone_is_made_again() -> None:
    row = alone()
    occurrence(row, 0)
    occurrence(row, 1)
    SchedulerExecution.objects.filter(state="skipped").delete()
    occurrence(row, 2)
    occurrence(row, 3)
    assert [missed for missed, _reason in skips(row)] == [2]


def test_a_schedule_that_may_overlap_runs_each_occurrence() -> None:
    row = SchedulerFactory(schedule="0 * * * *", params={})
    assert [len(occurrence(row, number)) for number in range(3)] == [1, 1, 1]
    assert row.overlap == "allow"


def test_open_executions_from_before_the_policy_was_set_count() -> None:
    row = alone(overlap="allow")
    old = [occurrence(row, number)[0] for number in range(2)]
    Scheduler.objects.update(overlap="skip")
    assert occurrence(row, 2) == []
    put(old[1], "succeeded")
    assert occurrence(row, 3) == []
    put(old[0], "succeeded")
    assert len(occurrence(row, 4)) == 1


def test_what_ran_while_overlap_was_allowed_is_not_forgotten() -> None:
    """The schedule names its open execution. The name must not survive a time in which several were open."""
    row = alone()
    (first,) = occurrence(row, 0)
    put(first, "succeeded")
    Scheduler.objects.update(overlap="allow")
    (second,) = occurrence(row, 1)
    Scheduler.objects.update(overlap="skip")
    assert second.pk
    assert occurrence(row, 2) == []


def test_the_execution_of_another_schedule_is_not_taken_for_an_open_one() -> None:
    """A fixture may bring `open_run` from another database, where another execution had this id."""
    row, other = alone(), SchedulerFactory(schedule="0 12 * * *", params={})
    (foreign,) = occurrence(other, 0)
    Scheduler.objects.filter(pk=row.pk).update(open_run=foreign.pk)
    (mine,) = occurrence(row, 0)
    Scheduler.objects.filter(pk=row.pk).update(open_run=foreign.pk)
    assert occurrence(row, 1) == []
    assert skips(row) == [(1, f"Left out, because execution {mine.pk} was not over.")]


def test_two_schedules_that_name_the_same_execution_are_told_apart() -> None:
    first, second = alone(), alone()
    (run,) = occurrence(second, 0)
    Scheduler.objects.update(open_run=run.pk)
    assert len(occurrence(first, 0)) == 1
    assert occurrence(second, 1) == []


def test_the_skipped_execution_of_another_schedule_counts_nothing() -> None:
    row, other = alone(), alone(schedule="0 12 * * *")
    occurrence(other, 0)
    run_now(other, DatabaseBroker())
    Scheduler.objects.filter(pk=row.pk).update(open_skip=SchedulerExecution.objects.get(state="skipped").pk)
    occurrence(row, 0)
    Scheduler.objects.filter(pk=row.pk).update(open_skip=SchedulerExecution.objects.get(state="skipped").pk)
    occurrence(row, 1)
    assert [missed for missed, _reason in skips(row)] == [1]
    assert [missed for missed, _reason in skips(other)] == [0]


def test_a_missed_time_and_the_overlap_are_both_on_record() -> None:
    row = alone()
    occurrence(row, 0)
    due(row, NOON + HOUR)
    assert claim_due(NOON + 4 * HOUR, embedded=True).claimed == []  # 13 to 15 are missed, and 16 is left out
    assert sorted(missed for missed, _reason in skips(row)) == [1, 3]


def test_what_is_left_out_after_an_outage_is_not_counted_as_missed() -> None:
    row = alone()
    due(row, NOON)
    (run,) = claim_due(NOON + 3 * HOUR, embedded=True).claimed  # 12 to 14 are missed, and 15 runs
    assert [occurrence(row, number) for number in (4, 5)] == [[], []]
    (missed, why), left_out = skips(row)
    assert (missed, why.startswith("Missed 3 occurrences")) == (3, True)
    assert left_out == (2, f"Left out, because execution {run.pk} was not over.")


def test_a_save_in_the_admin_keeps_the_names_of_the_open_and_the_counting_execution() -> None:
    """A form that was opened before these occurrences must not write what it has read."""
    row = alone()
    loaded = Scheduler.objects.get(pk=row.pk)
    (run,) = occurrence(row, 0)
    occurrence(row, 1)
    named = (run.pk, SchedulerExecution.objects.get(state="skipped").pk)
    loaded.description = "renamed"
    loaded.save()
    assert Scheduler.objects.values_list("open_run", "open_skip").get() == named
    loaded.open_run = loaded.open_skip = None
    loaded.schedule = "30 * * * *"
    loaded.save()
    assert Scheduler.objects.values_list("open_run", "open_skip").get() == named


def test_each_occurrence_that_is_left_out_is_reported_as_skipped() -> None:
    row = alone()
    occurrence(row, 0)
    for number in (1, 2):
        due(row, NOON + number * HOUR)
        assert claim_due(NOON + number * HOUR, embedded=True).skipped == 1


def test_an_unknown_policy_is_refused_in_a_form_and_runs_alone_in_the_database() -> None:
    row = alone()
    with pytest.raises(ValidationError, match="overlap"):
        Scheduler(overlap="maybe", schedule="0 * * * *", worker=row.worker).full_clean()
    Scheduler.objects.update(overlap="maybe")
    occurrence(row, 0)
    assert occurrence(row, 1) == []


def test_a_report_cannot_be_a_service() -> None:
    report = ReportFactory()
    with pytest.raises(ValidationError) as refused:
        Scheduler(schedule="0 * * * *", report=report, stay_alive=True).full_clean()
    (said,) = refused.value.message_dict["stay_alive"]  # the form shows it beside the field
    assert said.startswith("Only a worker can be a service.")
    with pytest.raises(IntegrityError), transaction.atomic():
        SchedulerFactory(worker=None, report=report, stay_alive=True)
