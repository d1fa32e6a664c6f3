"""The group of a schedule is copied to each execution when the execution is made, and reaches the run."""

from __future__ import annotations

import json
import uuid
from datetime import timedelta

import pytest
from django.utils import timezone as clock

from scheduling.broker import Delivery
from scheduling.broker.database import DatabaseBroker
from scheduling.core.messages import TaskMessage, decode, encode
from scheduling.execution.claim import claim_due
from scheduling.execution.foreign import adopt
from scheduling.execution.run_now import run_now
from scheduling.execution.run_once import run_once
from scheduling.handlers.run_config import RunConfigs
from scheduling.inbox import replay
from scheduling.models import ReplayGroup, Scheduler, SchedulerExecution
from scheduling.models.execution import message_of
from tests.contract.desk import Desk
from tests.factories import (
    FailedExecutionFactory,
    GroupFactory,
    ManualExecutionFactory,
    SchedulerFactory,
    UserFactory,
    WorkerFactory,
    due,
)
from tests.support import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.database]
BROKER = DatabaseBroker()


def test_a_claim_copies_the_group_to_runs_and_to_skipped_occurrences() -> None:
    group = GroupFactory()
    due(SchedulerFactory(schedule="*/10 * * * *", group=group), NOON)
    due(SchedulerFactory(schedule="*/10 * * * *"), NOON)
    claim_due(NOON + timedelta(minutes=35), embedded=True)
    found = SchedulerExecution.objects.order_by("pk").values_list("scheduler__group", "group", "state")
    assert sorted(found, key=str) == sorted(
        [(wanted, wanted, state) for wanted in (group.pk, None) for state in ("skipped", "queued")], key=str
    )


def test_the_group_is_that_of_the_claim_even_if_the_schedule_changes_it_before_the_run() -> None:
    first, second = GroupFactory(name="first"), GroupFactory(name="second")
    row = due(SchedulerFactory(schedule="0 12 * * *", group=first), NOON)
    (made,) = claim_due(NOON, embedded=True).claimed
    Scheduler.objects.filter(pk=row.pk).update(group=second)
    delivery = Desk(BROKER).start()
    assert delivery.message.group_id == first.pk
    assert RunConfigs().get(delivery.message).group == "first"
    made.refresh_from_db()
    assert made.group == first


def test_what_a_pause_has_left_out_has_the_group() -> None:
    group = GroupFactory()
    row = SchedulerFactory(schedule="* * * * *", group=group, off=True)
    Scheduler.objects.filter(pk=row.pk).update(
        paused_at=clock.now() - timedelta(hours=1), planned_status=False, planned_at=None
    )
    row.refresh_from_db()
    row.status = True
    row.save()
    assert SchedulerExecution.objects.get(state="skipped").group == group


def test_an_edit_of_the_times_records_missed_occurrences_with_the_group() -> None:
    group = GroupFactory()
    row = due(SchedulerFactory(schedule="* * * * *", group=group), clock.now() - timedelta(minutes=10))
    row.schedule = "0 0 1 1 *"
    row.save()
    assert SchedulerExecution.objects.get(state="skipped").group == group


def test_run_now_has_the_group_and_run_once_has_none() -> None:
    group = GroupFactory()
    assert run_now(SchedulerFactory(group=group), BROKER).group == group
    made, _new = run_once(WorkerFactory(), BROKER, "ada", {}, uuid.uuid4())
    assert made.group is None


@pytest.mark.parametrize(("of_run", "of_schedule", "wanted"), [("a", "b", "a"), ("a", None, "a"), (None, "b", "b")])
def test_a_rerun_keeps_the_group_of_the_run_whose_params_it_has(
    of_run: str | None, of_schedule: str | None, wanted: str
) -> None:
    groups = {"a": GroupFactory(name="a"), "b": GroupFactory(name="b"), None: None}
    row = ManualExecutionFactory(scheduler__group=groups[of_schedule], group=groups[of_run])
    made = run_now(row.scheduler, BROKER, "ada", key=uuid.uuid4(), instead=row.params, again=row)
    assert made.group == groups[wanted]


# --- messages


def adopted(**fields: object) -> SchedulerExecution:
    message = decode(json.dumps({"type": "worker", "id": WorkerFactory().pk, **fields}).encode())
    row = adopt(Delivery(message), "main", BROKER, clock.now())
    assert row is not None
    return row


def test_a_foreign_message_without_a_schedule_has_no_group() -> None:
    assert adopted().group is None
    assert adopted(group_id=GroupFactory().pk).group is None


def test_a_foreign_message_has_the_group_of_the_schedule_that_it_names() -> None:
    row = SchedulerFactory(group=GroupFactory())
    assert adopted(scheduler_id=row.pk).group == row.group
    assert adopted(scheduler_id=row.pk, group_id=GroupFactory().pk).group == row.group
    assert adopted(scheduler_id=row.pk + 1_000).group is None


def test_the_group_in_a_message_is_not_used_if_the_row_has_another_one() -> None:
    row, other = ManualExecutionFactory(group=GroupFactory()), GroupFactory()
    from dataclasses import replace

    from scheduling.consumer.start import begin

    now = clock.now()
    lie = replace(message_of(row), group_id=other.pk)
    (arrival,) = begin([Delivery(lie)], "desk", now, now + timedelta(seconds=60))
    assert arrival.started
    assert arrival.delivery.message.group_id == row.group_id


def test_a_message_names_its_group_only_if_it_has_one() -> None:
    plain = TaskMessage("worker", 1, execution_id=7)
    assert "group_id" not in plain.payload()
    with_group = TaskMessage("worker", 1, execution_id=7, group_id=3)
    assert decode(encode(with_group)).group_id == 3
    assert decode(encode(TaskMessage("worker", 1, group_id=3))).group_id is None


# --- replays


def test_a_replay_keeps_the_groups_of_its_executions() -> None:
    groups = [GroupFactory(), GroupFactory()]
    rows = [FailedExecutionFactory(group=group) for group in (*groups, None, groups[0])]
    made = replay.start(uuid.uuid4(), [[(row.pk, row.attempt)] for row in rows], BROKER, UserFactory(), "these")
    found = ReplayGroup.objects.filter(replay=made).values_list("group", flat=True)
    assert sorted(found) == sorted(group.pk for group in groups)
