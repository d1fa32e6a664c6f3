"""A service is started again however it has ended, until its schedule is paused or deleted, or the run is cancelled."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone as clock

from scheduling.broker import Delivery
from scheduling.broker.database import DatabaseBroker
from scheduling.core.messages import TaskMessage
from scheduling.core.outcome import Cancelled, Crashed, Failed, Interrupted, Outcome, Succeeded, TimedOut
from scheduling.execution import transitions
from scheduling.execution.cancel import cancel
from scheduling.execution.claim import claim_due
from scheduling.execution.foreign import adopt
from scheduling.execution.run_now import run_now
from scheduling.handlers.run_config import RunConfigs
from scheduling.models import Attempt, Output, Scheduler, SchedulerExecution, TallyMark
from scheduling.models.execution import message_of
from scheduling.processes import left_out
from scheduling.producer import stopped_services
from scheduling.producer.stopped_services import end_stopped_services
from scheduling.producer.sweeps import recover_leases, sweep
from tests.execution.services import LEASE, attempt, first_run, service
from tests.factories import SchedulerFactory, due
from tests.support import NOON

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    "outcome",
    [
        Succeeded(),
        Failed("ValueError", "no"),
        Failed("ValueError", "never again", retryable=False),
        TimedOut(60),
        Crashed(signal=9),
        Crashed(lost=True),
    ],
)
def test_a_service_is_started_again_whatever_has_ended_it(outcome: Outcome) -> None:
    run, now = first_run(service()), clock.now()
    delays = [attempt(run, outcome, now=now).retry for _ in range(4)]  # more than the policy's retries
    assert [retry.delay_ms for retry in delays if retry is not None] == [30_000, 60_000, 120_000, 240_000]
    assert (run.state, run.attempt, run.retry_count) == ("retrying", 4, 3)
    assert run.wake_at == now + timedelta(seconds=240)
    assert run.reason == "The service has ended. Restart 4 follows."
    assert Attempt.objects.filter(execution=run, outcome=outcome.name, retry_at__isnull=False).count() == 4


def test_after_an_hour_without_an_end_the_delay_is_the_first_one_again() -> None:
    run = first_run(service())
    delays = [
        attempt(run, Succeeded(), lasted).retry
        for lasted in (timedelta(0), timedelta(0), timedelta(hours=2), timedelta(0))
    ]
    assert [retry.delay_ms for retry in delays if retry is not None] == [30_000, 60_000, 30_000, 60_000]
    assert message_of(run).retry_count == 2


def test_an_interrupted_service_waits_for_no_delay() -> None:
    run = first_run(service())
    attempt(run, Succeeded())
    attempt(run, Interrupted(signal=15))
    assert (run.state, run.wake_at is not None and run.wake_at <= clock.now()) == ("queued", True)
    result = attempt(run, Succeeded())
    assert result.retry is not None
    assert result.retry.number == 2  # an interrupted attempt is no end


def test_interruptions_do_not_count_as_ends_of_a_service_that_works() -> None:
    """A site that deploys more often than once an hour still gets the first delay after an hour without an end."""
    run, half = first_run(service()), timedelta(minutes=31)
    attempt(run, Succeeded())
    attempt(run, Succeeded())
    attempt(run, Interrupted(signal=15), half)
    result = attempt(run, Succeeded(), half)
    assert result.retry is not None
    assert (result.retry.number, result.retry.delay_ms) == (1, 30_000)
    attempt(run, Interrupted(signal=15), timedelta(hours=5))
    assert attempt(run, Crashed(signal=9)).retry == result.retry
    following = attempt(run, Crashed(signal=9)).retry
    assert following is not None
    assert following.number == 2


@pytest.mark.parametrize("is_service", [True, False])
def test_a_cancel_wins_over_a_consumer_that_gives_its_runs_back(is_service: bool) -> None:
    run = first_run(service(stay_alive=is_service))
    SchedulerExecution.objects.filter(pk=run.pk).update(cancel_requested_by="ann")
    attempt(run, Interrupted(signal=15), is_service=is_service)
    assert (run.state, run.reason) == ("cancelled", "Cancelled by ann.")


def test_a_cancelled_service_ends() -> None:
    run = first_run(service())
    attempt(run, Cancelled("ann"))
    assert (run.state, cancel(run.pk, "ann")) == ("cancelled", "over")
    waiting = first_run(service())
    attempt(waiting, Succeeded())
    assert cancel(waiting.pk, "ann") == "cancelled"


def test_a_cancel_wins_over_a_service_that_returns() -> None:
    run = first_run(service())
    SchedulerExecution.objects.filter(pk=run.pk).update(cancel_requested_by="ann")
    attempt(run, Succeeded())
    assert (run.state, run.reason) == ("cancelled", "Cancelled by ann.")


def test_its_occurrences_are_left_out_while_it_runs_and_while_it_waits() -> None:
    row = service()
    run = first_run(row)
    for number, state in enumerate(["queued", "running", "retrying"], start=1):
        SchedulerExecution.objects.filter(pk=run.pk).update(state=state)
        due(row, NOON + timedelta(minutes=number))
        assert claim_due(NOON + timedelta(minutes=number), embedded=True).claimed == []
    skip = SchedulerExecution.objects.get(state="skipped")
    said = f"Left out, because the service was running already, as execution {run.pk}."
    assert (skip.missed, skip.reason) == (3, said)
    SchedulerExecution.objects.filter(pk=run.pk).update(state="cancelled")
    due(row, NOON + timedelta(minutes=9))
    assert len(claim_due(NOON + timedelta(minutes=9), embedded=True).claimed) == 1


def test_the_newest_hundred_attempts_are_kept() -> None:
    run = first_run(service())
    other = first_run(service())
    Attempt.objects.create(execution=other, number=1, started_at=NOON, finished_at=NOON, outcome="failed")
    TallyMark.objects.create(attempt=10**9, seen=10**9)
    for number in range(1, 104):
        Output.objects.create(execution=run, attempt=number, sequence=1, text="x", created_at=NOON)
        attempt(run, Interrupted() if number % 2 else Succeeded())
    kept = list(range(4, 104))
    assert list(Attempt.objects.filter(execution=run).order_by("number").values_list("number", flat=True)) == kept
    assert list(Output.objects.filter(execution=run).order_by("attempt").values_list("attempt", flat=True)) == kept
    assert Attempt.objects.filter(execution=other).count() == 1
    TallyMark.objects.update(attempt=0)
    attempt(run, Succeeded())
    assert Attempt.objects.filter(execution=run).count() == 101, "attempts that are not tallied yet stay"


@pytest.mark.parametrize("state", ["queued", "running", "retrying"])
def test_a_pause_ends_a_service(state: str) -> None:
    row = service()
    run = first_run(row)
    lease = clock.now() + LEASE
    SchedulerExecution.objects.filter(pk=run.pk).update(state=state, wake_at=lease)
    assert end_stopped_services(clock.now()) == 0
    row.refresh_from_db()
    row.status, row.paused_by = False, "ann"
    row.save()
    assert sweep(DatabaseBroker(), clock.now()).stopped == 1
    run.refresh_from_db()
    if state == "running":
        assert run.cancel_requested_by == "ann, who has paused the schedule"
    else:
        assert (run.state, run.reason) == ("cancelled", "Cancelled by ann, who has paused the schedule.")
    assert end_stopped_services(clock.now()) == 0


def test_plain_sql_that_pauses_or_deletes_a_service_ends_it_too() -> None:
    paused, deleted, ordinary = service(), service(), SchedulerFactory(schedule="* * * * *", params={})
    runs = [first_run(row) for row in (paused, deleted, ordinary)]
    Scheduler.objects.filter(pk=paused.pk).update(status=False)
    SchedulerExecution.objects.filter(scheduler=deleted).update(scheduler=None)
    rows = Scheduler.objects.filter(pk=deleted.pk)
    rows._raw_delete(rows.db)
    ordinary.delete()
    assert end_stopped_services(clock.now()) == 2
    for run in runs:
        run.refresh_from_db()
    assert [run.state for run in runs] == ["cancelled", "cancelled", "queued"]
    assert runs[0].reason == "Cancelled by the software: its schedule is paused."


def test_a_refused_row_hides_no_other_stopped_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopped_services, "ROWS_PER_SWEEP", 1)
    runs = [first_run(service()) for _ in range(2)]
    Scheduler.objects.update(status=False)
    left_out.executions.learn(runs[0].pk, 60)
    try:
        assert end_stopped_services(clock.now()) == 1
    finally:
        left_out.executions.clear()
    for run in runs:
        run.refresh_from_db()
    assert [run.state for run in runs] == ["queued", "cancelled"]


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_service_that_a_message_has_started_ends_with_its_schedule(state: str) -> None:
    row = service()
    message = TaskMessage(type="worker", id=row.worker_id or 0, scheduler_id=row.pk, params={})
    run = adopt(Delivery(message, message_id="m1"), "standalone", DatabaseBroker(), clock.now())
    assert run is not None
    SchedulerExecution.objects.update(state=state)
    row.delete()
    run.refresh_from_db()
    said = "the software: its schedule is deleted"
    expected = ("running", said, "") if state == "running" else ("cancelled", "", f"Cancelled by {said}.")
    assert (run.state, run.cancel_requested_by, run.reason) == expected


def test_a_run_without_a_schedule_that_a_message_has_started_goes_on() -> None:
    SchedulerExecution.objects.create(
        execution_key="message-1", scheduled_at=NOON, trigger="message", type="worker", target_id=1,
        executed_at=NOON, container_id="x", state="queued", queue="standalone",
    )  # fmt: skip
    assert end_stopped_services(clock.now()) == 0


def test_a_service_with_a_date_runs_on_after_its_only_occurrence() -> None:
    row = SchedulerFactory(once=True, stay_alive=True, params={})
    Scheduler.objects.filter(pk=row.pk).update(date_time=NOON, planned_date_time=NOON, next_run_at=NOON)
    (run,) = claim_due(NOON, embedded=True).claimed
    row.refresh_from_db()
    assert row.status is False
    attempt(run, Succeeded())
    assert end_stopped_services(clock.now()) == 0
    assert run.state == "retrying"
    assert run_now(row, DatabaseBroker(), by="ann").state == "skipped"


def test_a_paused_service_is_not_run_by_hand() -> None:
    row = service(status=False)
    made = run_now(row, DatabaseBroker(), by="ann")
    assert made.state == "skipped"
    assert made.reason == "Left out, because the service is paused. Resume it; then its next occurrence starts it."


def test_a_service_that_loses_its_lease_is_started_again_after_its_delay() -> None:
    row = service(retry_delay_ms=5_000)
    run = first_run(row)
    now = clock.now()
    assert transitions.start(run.pk, 1, run.execution_key, "one", now - 2 * LEASE, now - LEASE)
    assert recover_leases(DatabaseBroker(), now, RunConfigs()) == 1
    run.refresh_from_db()
    assert (run.state, run.wake_at) == ("retrying", now + timedelta(seconds=5))


def test_a_message_that_names_a_service_starts_it_in_the_standalone_queue() -> None:
    row = service()
    message = TaskMessage(type="worker", id=row.worker_id or 0, scheduler_id=row.pk, params={})
    run = adopt(Delivery(message, message_id="m1"), "main", DatabaseBroker(), clock.now())
    assert run is not None
    assert (run.state, run.queue) == ("queued", "standalone")
