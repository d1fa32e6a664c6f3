"""A schedule that runs alone never has two open executions, and each occurrence that it leaves out is counted."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils import timezone as clock

from scheduling.broker import Delivery
from scheduling.broker.database import DatabaseBroker
from scheduling.core.lifecycle import State
from scheduling.core.messages import TaskMessage
from scheduling.execution.cancel import cancel
from scheduling.execution.claim import claim_due
from scheduling.execution.foreign import adopt
from scheduling.execution.run_now import overlap_problem, run_now
from scheduling.inbox.actions import republish, requeue_in_transaction
from scheduling.models import Scheduler, SchedulerExecution
from tests.factories import ReportFactory, SchedulerExecutionFactory, SchedulerFactory, due
from tests.support import NOON, at_once

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)
OPEN = ["claimed", "queued", "running", "retrying"]


def alone(**columns: Any) -> Scheduler:
    """Make a schedule that leaves out a run while the run before it is not over."""
    return SchedulerFactory(**{"schedule": "0 * * * *", "params": {}, "overlap": "skip", **columns})


def occurrence(row: Scheduler, number: int) -> list[SchedulerExecution]:
    """Claim the occurrence `number` hours after noon, at this instant. Returns the new executions."""
    now = NOON + number * HOUR
    due(row, now)
    return claim_due(now, embedded=True).claimed


def put(row: SchedulerExecution, state: str) -> None:
    SchedulerExecution.objects.filter(pk=row.pk).update(state=state)


def skips(row: Scheduler) -> list[tuple[int, str]]:
    rows = SchedulerExecution.objects.filter(scheduler=row, state="skipped").order_by("pk")
    return list(rows.values_list("missed", "reason"))


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


@pytest.mark.parametrize("door", ["run now", "republish", "replay", "message"])
def test_what_other_doors_let_in_while_overlap_was_allowed_is_not_forgotten(door: str) -> None:
    """Between two changes of the policy, no occurrence may have fallen due that a producer could claim."""
    row, broker = alone(), DatabaseBroker()
    (first,) = occurrence(row, 0)
    put(first, "succeeded")
    failure = SchedulerExecutionFactory(scheduler=row, state="failed", type="worker", target_id=row.worker_id)
    Scheduler.objects.update(overlap="allow")
    if door == "run now":
        run_now(row, broker)
    elif door == "republish":
        assert republish([failure.pk], broker, "ann", NOON) == [failure.pk]
    elif door == "replay":
        with transaction.atomic():
            assert len(requeue_in_transaction({failure.pk: failure.attempt}, broker, "again", NOON)) == 1
    else:
        message = TaskMessage(type="worker", id=row.worker_id or 0, scheduler_id=row.pk, params={})
        assert adopt(Delivery(message, message_id="m1"), "main", broker, clock.now()) is not None
    Scheduler.objects.update(overlap="skip")
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


def test_a_save_in_the_admin_keeps_the_name_of_the_open_execution() -> None:
    row = alone()
    loaded = Scheduler.objects.get(pk=row.pk)
    occurrence(row, 0)
    loaded.description = "renamed"
    loaded.save()
    loaded.schedule = "30 * * * *"
    loaded.save()
    assert occurrence(loaded, 1) == []


def test_run_now_is_refused_while_an_execution_is_open() -> None:
    row = alone()
    (first,) = occurrence(row, 0)
    refused = run_now(row, DatabaseBroker(), by="ann")
    assert (refused.state, refused.requested_by) == ("skipped", "ann")
    assert refused.reason == f"Left out, because execution {first.pk} was not over."
    put(first, "succeeded")
    started = run_now(row, DatabaseBroker(), by="ann")
    assert started.state == "queued"
    assert occurrence(row, 1) == []


def test_a_failed_execution_is_not_republished_beside_an_open_one() -> None:
    row, broker = alone(), DatabaseBroker()
    (first,) = occurrence(row, 0)
    put(first, "failed")
    (second,) = occurrence(row, 1)
    assert republish([first.pk], broker, "ann", NOON) == []
    assert overlap_problem(first.pk) == f"Left out, because execution {second.pk} was not over."
    first.refresh_from_db()
    assert first.state == "failed"
    put(second, "failed")
    assert overlap_problem(first.pk) == ""
    assert republish([first.pk, second.pk], broker, "ann", NOON) == [first.pk]
    assert occurrence(row, 2) == []


def test_a_message_that_names_the_schedule_starts_nothing_beside_an_open_execution() -> None:
    row = alone()
    (first,) = occurrence(row, 0)
    message = TaskMessage(type="worker", id=row.worker_id or 0, scheduler_id=row.pk, params={})
    assert adopt(Delivery(message, message_id="m1"), "main", DatabaseBroker(), clock.now()) is None
    assert skips(row) == [(0, f"Left out, because execution {first.pk} was not over.")]
    put(first, "succeeded")
    assert adopt(Delivery(message, message_id="m2"), "main", DatabaseBroker(), clock.now()) is not None
    assert occurrence(row, 1) == []


def test_a_message_moved_out_of_the_failed_queue_by_hand_is_parked_again() -> None:
    row = alone()
    (first,) = occurrence(row, 0)
    SchedulerExecution.objects.filter(pk=first.pk).update(state="failed", published_at=NOON)
    occurrence(row, 1)
    first.refresh_from_db()
    message = TaskMessage(
        type="worker", id=row.worker_id or 0, scheduler_id=row.pk, params={}, execution_id=first.pk,
        attempt=first.attempt, execution_key=first.execution_key, parked=True,
    )  # fmt: skip
    assert adopt(Delivery(message), "main", DatabaseBroker(), clock.now()) is None
    first.refresh_from_db()
    assert (first.state, first.published_at) == ("failed", None)


def test_a_cancelled_execution_is_over() -> None:
    row = alone()
    (first,) = occurrence(row, 0)
    cancel(first.pk, "ann", NOON)
    assert len(occurrence(row, 1)) == 1


def test_an_unknown_policy_is_refused_in_a_form_and_runs_alone_in_the_database() -> None:
    row = alone()
    with pytest.raises(ValidationError, match="overlap"):
        Scheduler(overlap="replace", schedule="0 * * * *", worker=row.worker).full_clean()
    Scheduler.objects.update(overlap="replace")
    occurrence(row, 0)
    assert occurrence(row, 1) == []


def test_a_report_cannot_be_a_service() -> None:
    report = ReportFactory()
    with pytest.raises(ValidationError) as refused:
        Scheduler(schedule="0 * * * *", report=report, stay_alive=True).full_clean()
    assert "Only a worker can be a service" in str(refused.value)
    with pytest.raises(IntegrityError), transaction.atomic():
        SchedulerFactory(worker=None, report=report, stay_alive=True)


@pytest.mark.django_db(transaction=True)
def test_of_many_doors_at_once_one_lets_an_execution_in() -> None:
    """Claims, manual runs, republished failures and messages compete for one schedule, each on its own connection."""
    broker = DatabaseBroker()
    for _round in range(12):
        row = alone(overlap="skip")
        failure = SchedulerExecutionFactory(scheduler=row, state="failed", type="worker", target_id=row.worker_id)
        due(row, NOON)
        message = TaskMessage(type="worker", id=row.worker_id or 0, scheduler_id=row.pk, params={})
        parked = replace(
            message, execution_id=failure.pk, attempt=failure.attempt, execution_key=failure.execution_key, parked=True
        )
        at_once(
            [
                lambda: claim_due(NOON, embedded=True),
                lambda row=row: run_now(row, broker, by="ann"),
                lambda failure=failure: republish([failure.pk], broker, "ann"),
                lambda message=message: adopt(Delivery(message), "main", broker, clock.now()),
                lambda parked=parked: adopt(Delivery(parked), "main", broker, clock.now()),
                lambda: claim_due(NOON, embedded=True),
                lambda row=row: run_now(row, broker, by="bob"),
            ]
        )
        claim_due(NOON, embedded=True)  # a claim leaves out a schedule that another process has locked
        mine = SchedulerExecution.objects.filter(scheduler=row)
        assert mine.filter(state__in=[str(state) for state in (*OPEN, State.CLAIMED)]).count() == 1
        mine.update(state="succeeded")
