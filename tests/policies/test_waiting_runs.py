"""With `wait`, the newest run waits until the one before it is over. With `replace`, the one before it is cancelled."""

from __future__ import annotations

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone as clock

from scheduling.broker import Delivery
from scheduling.broker.database import DatabaseBroker
from scheduling.core.lifecycle import OPEN_STATES
from scheduling.core.messages import TaskMessage
from scheduling.execution.blocked_runs import LOOK_AGAIN, release
from scheduling.execution.cancel import cancel
from scheduling.execution.claim import claim_due
from scheduling.execution.foreign import adopt
from scheduling.execution.run_now import overlap_now, overlap_problem, run_now
from scheduling.execution.transitions import start
from scheduling.inbox.actions import republish
from scheduling.models import Scheduler, SchedulerExecution, UncountedSkip
from scheduling.processes.identity import container_id
from scheduling.producer.blocked_runs import sweep_blocked
from tests.factories import SchedulerExecutionFactory, SchedulerFactory, due
from tests.policies.schedules import HOUR, alone, occurrence, put, skips
from tests.support import NOON, at_once

pytestmark = pytest.mark.django_db

BROKER = DatabaseBroker()


def blocked(row: Scheduler) -> list[int]:
    rows = SchedulerExecution.objects.filter(scheduler=row, state="blocked").order_by("pk")
    return list(rows.values_list("pk", flat=True))


def state(pk: int) -> str:
    found: str = SchedulerExecution.objects.values_list("state", flat=True).get(pk=pk)
    return found


def test_an_occurrence_waits_until_the_one_before_it_is_over() -> None:
    row = alone(overlap="wait")
    (first,) = occurrence(row, 0)
    assert occurrence(row, 1) == []
    (second,) = blocked(row)
    waits = SchedulerExecution.objects.get(pk=second)
    assert waits.reason == f"It waits until execution {first.pk} is over."
    assert (waits.execution_key, waits.published_at, skips(row)) == ("cron-2026-3-10-13-0", None, [])
    assert release([row.pk], BROKER, NOON) == []
    put(first, "succeeded")
    assert [run.pk for run in release([row.pk], BROKER, NOON + 2 * HOUR)] == [second]
    waits.refresh_from_db()
    assert (waits.state, waits.wake_at, waits.reason) == ("queued", NOON + 2 * HOUR, "")
    row.refresh_from_db()
    assert (row.open_run, row.waiting_run) == (second, None)


def test_nothing_can_start_a_run_that_waits_for_its_turn() -> None:
    row = alone(overlap="wait")
    occurrence(row, 0)
    occurrence(row, 1)
    waits = SchedulerExecution.objects.get(state="blocked")
    now = clock.now()
    assert not start(waits.pk, 1, waits.execution_key, container_id(), now, now)
    taken = BROKER.take(["main"], 10, now + 100 * HOUR)
    assert waits.pk not in [delivery.message.execution_id for delivery in taken]


def test_of_many_occurrences_the_newest_waits() -> None:
    row = alone(overlap="wait")
    (first,) = occurrence(row, 0)
    for number in (1, 2, 3):
        assert occurrence(row, number) == []
    (newest,) = blocked(row)
    before = [newest - 2, newest - 1]
    said = "Left out, because it was still waiting when the newer execution {} fell due."
    assert skips(row) == [(1, said.format(before[1])), (1, said.format(newest))]
    assert sorted(UncountedSkip.objects.values_list("reason", "number")) == [("overlap", 1), ("overlap", 1)]
    put(first, "failed")
    assert sweep_blocked(BROKER, NOON + 4 * HOUR) == 1
    assert state(newest) == "queued"


def test_the_one_that_waits_has_its_turn_before_a_newer_one() -> None:
    """No process has let it in since the other one has ended."""
    row = alone(overlap="wait")
    (first,) = occurrence(row, 0)
    occurrence(row, 1)
    (second,) = blocked(row)
    put(first, "succeeded")
    assert [run.pk for run in occurrence(row, 2)] == [second]
    (third,) = blocked(row)
    assert skips(row) == []
    assert SchedulerExecution.objects.get(pk=third).reason == f"It waits until execution {second} is over."


def test_a_run_that_waits_for_its_retry_is_not_over() -> None:
    row = alone(overlap="wait")
    (first,) = occurrence(row, 0)
    put(first, "retrying")
    occurrence(row, 1)
    assert sweep_blocked(BROKER, NOON + 2 * HOUR) == 0
    assert len(blocked(row)) == 1


@pytest.mark.parametrize("doing", ["claimed", "queued", "retrying"])
def test_a_run_that_only_waits_is_replaced_at_once(doing: str) -> None:
    row = alone(overlap="replace")
    (first,) = occurrence(row, 0)
    put(first, doing)
    (second,) = occurrence(row, 1)
    first.refresh_from_db()
    assert (first.state, second.state, blocked(row)) == ("cancelled", "queued", [])
    assert first.reason == f"Cancelled by the software: execution {second.pk} replaces it."
    row.refresh_from_db()
    assert row.open_run == second.pk


def test_a_run_that_runs_is_cancelled_and_replaced_when_it_has_ended() -> None:
    row = alone(overlap="replace")
    (first,) = occurrence(row, 0)
    put(first, "running")
    assert occurrence(row, 1) == []
    (second,) = blocked(row)
    first.refresh_from_db()
    assert (first.state, first.cancel_requested_by) == ("running", f"the software: execution {second} replaces it")
    said = SchedulerExecution.objects.get(pk=second).reason
    assert said == f"It replaces execution {first.pk}, and starts when that one has ended."
    assert occurrence(row, 2) == []
    (third,) = blocked(row)
    assert (state(second), state(first.pk)) == ("skipped", "running")
    put(first, "cancelled")
    assert [run.pk for run in release([row.pk], BROKER, NOON)] == [third]


def test_each_of_several_open_runs_is_replaced() -> None:
    row = alone(overlap="allow")
    runs = [occurrence(row, number)[0] for number in range(3)]
    put(runs[1], "running")
    Scheduler.objects.update(overlap="replace")
    assert occurrence(row, 3) == []
    for number in (1, 2):
        sweep_blocked(BROKER, NOON + 3 * HOUR + number * 2 * LOOK_AGAIN)
    assert [state(run.pk) for run in runs] == ["cancelled", "running", "cancelled"]
    put(runs[1], "cancelled")
    assert sweep_blocked(BROKER, NOON + 4 * HOUR) == 1


@pytest.mark.parametrize("policy", ["wait", "replace"])
def test_run_now_obeys_the_policy_unless_it_is_to_run_beside(policy: str) -> None:
    row = alone(overlap=policy)
    (first,) = occurrence(row, 0)
    put(first, "running")
    assert str(first.pk) in overlap_now(row.pk)
    made = run_now(row, BROKER, by="ann")
    assert (made.state, blocked(row)) == ("blocked", [made.pk])
    assert bool(SchedulerExecution.objects.get(pk=first.pk).cancel_requested_by) is (policy == "replace")
    beside = run_now(row, BROKER, by="ann", beside=True)
    assert beside.state == "queued"
    row.refresh_from_db()
    assert (row.open_run, row.waiting_run) == (first.pk, made.pk)
    message = TaskMessage(type="worker", id=row.worker_id or 0, scheduler_id=row.pk, params={})
    assert adopt(Delivery(message, message_id="m1"), "main", BROKER, clock.now()) is None
    assert state(made.pk) == "skipped"
    assert len(blocked(row)) == 1


def test_a_service_never_runs_beside_itself() -> None:
    row = alone(stay_alive=True, overlap="allow")
    occurrence(row, 0)
    assert run_now(row, BROKER, beside=True).state == "skipped"


def test_a_failure_stays_in_the_inbox_while_another_run_is_open_or_waits() -> None:
    row = alone(overlap="wait")
    (first,) = occurrence(row, 0)
    failure = SchedulerExecutionFactory(scheduler=row, state="failed", type="worker", target_id=row.worker_id)
    assert republish([failure.pk], BROKER, "ann", NOON) == []
    assert overlap_problem(failure.pk) == f"Left out, because execution {first.pk} was not over."
    occurrence(row, 1)
    put(first, "succeeded")
    assert republish([failure.pk], BROKER, "ann", NOON) == []  # the one that waits has its turn first
    assert (state(failure.pk), len(blocked(row))) == ("failed", 1)


def test_a_run_that_waits_can_be_cancelled() -> None:
    row = alone(overlap="wait")
    (first,) = occurrence(row, 0)
    occurrence(row, 1)
    (second,) = blocked(row)
    assert cancel(second, "ann", NOON) == "cancelled"
    put(first, "succeeded")
    assert release([row.pk], BROKER, NOON) == []
    assert len(occurrence(row, 2)) == 1


def test_a_cancel_of_the_open_run_is_seen_by_the_next_sweep() -> None:
    row = alone(overlap="wait")
    (first,) = occurrence(row, 0)
    occurrence(row, 1)
    now = NOON + HOUR
    assert sweep_blocked(BROKER, now) == 0
    cancel(first.pk, "ann", now)
    assert sweep_blocked(BROKER, now) == 1


def test_a_wait_whose_name_is_lost_ends_all_the_same() -> None:
    row = alone(overlap="wait")
    (first,) = occurrence(row, 0)
    occurrence(row, 1)
    Scheduler.objects.update(waiting_run=None)
    put(first, "succeeded")
    assert sweep_blocked(BROKER, NOON + 2 * HOUR) == 1
    assert len(occurrence(row, 2)) == 0  # the one that was let in is open


def test_of_two_that_wait_the_newer_one_stays() -> None:
    row = alone(overlap="wait")
    occurrence(row, 0)
    occurrence(row, 1)
    Scheduler.objects.update(waiting_run=None)
    occurrence(row, 2)
    first, second = blocked(row)
    sweep_blocked(BROKER, NOON + 4 * HOUR)
    assert (blocked(row), state(first)) == ([second], "skipped")


def test_what_waits_for_a_schedule_that_may_overlap_by_now_starts() -> None:
    row = alone(overlap="wait")
    occurrence(row, 0)
    occurrence(row, 1)
    Scheduler.objects.update(overlap="allow")
    assert sweep_blocked(BROKER, NOON + 2 * HOUR) == 1


def test_what_waits_for_a_deleted_schedule_is_cancelled() -> None:
    row = alone(overlap="wait")
    occurrence(row, 0)
    occurrence(row, 1)
    (second,) = blocked(row)
    row.delete()
    sweep_blocked(BROKER, NOON + 2 * HOUR)
    ended = SchedulerExecution.objects.get(pk=second)
    assert (ended.state, ended.reason) == ("cancelled", "Cancelled by the software: its schedule is deleted.")


def test_a_sweep_looks_at_each_wait_once_in_a_while(django_assert_max_num_queries: object) -> None:
    for _ in range(5):
        row = alone(overlap="wait")
        occurrence(row, 0)
        occurrence(row, 1)
    now = NOON + 2 * HOUR
    sweep_blocked(BROKER, now)
    assert not SchedulerExecution.objects.filter(state="blocked", wake_at__lte=now).exists()
    with django_assert_max_num_queries(4):  # type: ignore[operator]
        sweep_blocked(BROKER, now)
    with django_assert_max_num_queries(7):  # type: ignore[operator]
        sweep_blocked(BROKER, now + 2 * LOOK_AGAIN)


@pytest.mark.parametrize("policy", ["wait", "replace"])
def test_a_service_cannot_wait_for_itself(policy: str) -> None:
    row = alone(overlap="skip")
    with pytest.raises(ValidationError) as refused:
        Scheduler(schedule="0 * * * *", worker=row.worker, stay_alive=True, overlap=policy).full_clean()
    assert list(refused.value.message_dict) == ["overlap"]
    Scheduler.objects.filter(pk=row.pk).update(stay_alive=True, overlap=policy)  # plain SQL can
    occurrence(row, 0)
    assert occurrence(row, 1) == []
    assert [missed for missed, _reason in skips(row)] == [1]


@pytest.mark.django_db(transaction=True)
def test_of_many_claims_and_ends_at_once_no_two_are_open() -> None:
    """Claims, manual runs, releases and sweeps compete, each on its own connection."""
    for number in range(6):
        row = alone(overlap=("wait", "replace")[number % 2])
        (first,) = occurrence(row, 0)
        put(first, "running")
        occurrence(row, 1)
        due(row, NOON + 2 * HOUR)

        def end(first: SchedulerExecution = first, row: Scheduler = row) -> object:
            SchedulerExecution.objects.filter(pk=first.pk).update(state="succeeded", finished_at=NOON)
            return release([row.pk], BROKER, NOON + 2 * HOUR)

        at_once(
            [
                end,
                lambda: claim_due(NOON + 2 * HOUR, embedded=True),
                lambda row=row: run_now(row, BROKER, by="ann"),
                lambda row=row: release([row.pk], BROKER, NOON + 2 * HOUR),
                lambda: sweep_blocked(BROKER, NOON + 2 * HOUR),
            ]
        )
        claim_due(NOON + 2 * HOUR, embedded=True)
        mine = SchedulerExecution.objects.filter(scheduler=row)
        assert mine.filter(state__in=("claimed", "queued", "running", "retrying")).count() <= 1
        assert mine.filter(state="blocked").count() <= 1
        for _ in range(4):
            mine.exclude(state="blocked").filter(state__in=OPEN_STATES).update(state="succeeded")
            sweep_blocked(BROKER, clock.now() + HOUR)
        assert not mine.filter(state__in=OPEN_STATES).exclude(state="queued").exists()


def test_a_schedule_that_allows_overlap_blocks_nothing() -> None:
    row = SchedulerFactory(schedule="0 * * * *", params={})
    assert [len(occurrence(row, number)) for number in range(3)] == [1, 1, 1]
    assert blocked(row) == []
