"""No door lets a second execution of a schedule in that runs alone: run now, republish, messages and claims."""

from __future__ import annotations

from dataclasses import replace

import pytest
from django.db import transaction
from django.utils import timezone as clock

from scheduling.broker import Delivery
from scheduling.broker.database import DatabaseBroker
from scheduling.core.messages import TaskMessage
from scheduling.execution.cancel import cancel
from scheduling.execution.claim import claim_due
from scheduling.execution.foreign import adopt
from scheduling.execution.run_now import overlap_problem, run_now
from scheduling.inbox.actions import republish, requeue_in_transaction
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.policies import overlap
from tests.factories import SchedulerExecutionFactory, due
from tests.policies.schedules import HOUR, OPEN, alone, occurrence, put, skips
from tests.support import NOON, Clock, at_once

pytestmark = pytest.mark.django_db


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


def test_a_run_now_is_dated_after_its_wait_for_the_schedule(at: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, it could be left out because of an execution that was claimed later than it was asked for."""
    row, lock = alone(), overlap.locked

    def waits(pk: int) -> object:
        found = lock(pk)
        at(NOON + HOUR)
        return found

    at(NOON)
    monkeypatch.setattr(overlap, "locked", waits)
    assert run_now(row, DatabaseBroker()).executed_at == NOON + HOUR


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
        assert mine.filter(state__in=OPEN).count() == 1
        mine.update(state="succeeded")
