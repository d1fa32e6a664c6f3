"""Promise 2 of README.md: an attempt starts once, and only its owner's result counts."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest
from django.db import transaction
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.core.lifecycle import State
from scheduling.core.messages import TaskMessage
from scheduling.core.outcome import Cancelled, Crashed, Failed, Interrupted, Succeeded
from scheduling.core.retry import RetryPolicy
from scheduling.execution import transitions
from scheduling.execution.announce import announce
from scheduling.execution.settle import settle_attempt
from scheduling.execution.transitions import Ended
from scheduling.handlers.run_config import RunConfigs
from scheduling.models import Attempt, SchedulerExecution
from scheduling.producer.sweeps import recover_leases
from scheduling.signals import execution_failed
from tests.factories import ManualExecutionFactory
from tests.support import at_once

pytestmark = pytest.mark.django_db

LEASE = timedelta(seconds=15)
POLICY = RetryPolicy(max_retries=1, delay_ms=1000)


def started(execution: SchedulerExecution, attempt: int = 1, consumer: str = "one") -> Ended:
    now = clock.now()
    assert transitions.start(execution.pk, attempt, execution.execution_key, consumer, now, now + LEASE)
    return Ended(execution.pk, attempt, now, consumer, 4711)


def settled(ended: Ended, outcome: object, policy: RetryPolicy = POLICY, embedded: bool = True) -> State | None:
    with transaction.atomic():
        return settle_attempt(ended, outcome, policy, clock.now(), embedded=embedded).state  # type: ignore[arg-type]


def test_a_copy_of_a_message_starts_nothing() -> None:
    execution = ManualExecutionFactory()
    started(execution)
    now = clock.now()
    assert not transitions.start(execution.pk, 1, execution.execution_key, "two", now, now + LEASE)
    assert not transitions.start(
        execution.pk, 2, execution.execution_key, "two", now, now + LEASE
    )  # the first attempt still runs, so a second attempt must not start
    execution.refresh_from_db()
    assert (execution.state, execution.attempt, execution.consumer) == ("running", 1, "one")


def test_an_attempt_that_starts_before_its_confirm_has_a_published_time() -> None:
    execution = ManualExecutionFactory(state="claimed", published_at=None)
    ended = started(execution)
    execution.refresh_from_db()
    assert execution.published_at == ended.started_at
    assert settled(ended, Failed("E", "no"), embedded=False) is State.RETRYING
    execution.refresh_from_db()
    assert execution.published_at is None  # the message of the retry is not confirmed
    again = started(execution, attempt=2)
    execution.refresh_from_db()
    assert execution.published_at == again.started_at
    known = ManualExecutionFactory()
    published_at = known.published_at
    started(known)
    known.refresh_from_db()
    assert known.published_at == published_at


def test_a_late_message_of_an_earlier_attempt_starts_nothing() -> None:
    execution = ManualExecutionFactory()
    assert settled(started(execution), Failed("E", "no")) is State.RETRYING
    now = clock.now()
    assert not transitions.start(execution.pk, 1, execution.execution_key, "two", now, now + LEASE)
    assert transitions.start(execution.pk, 2, execution.execution_key, "two", now, now + LEASE)


@pytest.mark.django_db(transaction=True)
def test_ten_consumers_with_one_message_start_it_once() -> None:
    execution = ManualExecutionFactory()

    def consume(name: str) -> bool:
        now = clock.now()
        return transitions.start(execution.pk, 1, execution.execution_key, name, now, now + LEASE)

    wins = at_once([partial(consume, str(number)) for number in range(10)])
    assert sorted(wins) == [False] * 9 + [True]


def test_a_process_that_is_fenced_off_cannot_record_its_result() -> None:
    """A consumer's lease ends, and a second consumer runs the next attempt. The first consumer's result is refused."""
    execution = ManualExecutionFactory()
    first = started(execution, consumer="first")
    later = clock.now() + LEASE * 2
    assert recover_leases(DatabaseBroker(), later, RunConfigs()) == 1
    started(execution, attempt=2, consumer="second")
    assert settled(first, Succeeded()) is None
    execution.refresh_from_db()
    assert (execution.state, execution.attempt, execution.consumer) == ("running", 2, "second")
    assert list(Attempt.objects.values_list("number", "outcome")) == [(1, "crashed")]


def test_only_the_first_result_of_an_attempt_is_recorded() -> None:
    execution = ManualExecutionFactory()
    ended = started(execution)
    assert settled(ended, Succeeded()) is State.SUCCEEDED
    assert settled(ended, Failed("E", "no")) is None
    execution.refresh_from_db()
    assert execution.state == "succeeded"
    assert Attempt.objects.get().outcome == "succeeded"


def test_an_attempt_with_a_valid_lease_is_not_recovered() -> None:
    execution = ManualExecutionFactory()
    started(execution)
    assert recover_leases(DatabaseBroker(), clock.now(), RunConfigs()) == 0
    execution.refresh_from_db()
    assert execution.state == "running"


def test_an_expired_lease_is_a_crash_that_counts_and_is_retried_at_once() -> None:
    execution = ManualExecutionFactory(scheduler__handler="tests.fail")
    started(execution)
    later = clock.now() + LEASE * 2
    recover_leases(DatabaseBroker(), later, RunConfigs())
    execution.refresh_from_db()
    attempt = Attempt.objects.get()
    assert (execution.state, execution.wake_at) == ("retrying", later)
    assert (attempt.outcome, attempt.consumer, attempt.retry_at) == ("crashed", "one", later)
    assert "lease" in attempt.error_message


def test_a_run_that_kills_its_consumer_each_time_ends_in_the_inbox() -> None:
    execution = ManualExecutionFactory(scheduler__handler="tests.fail")
    now = clock.now()
    for attempt in (1, 2, 3):
        transitions.start(execution.pk, attempt, execution.execution_key, "one", now, now + LEASE)
        now += LEASE * 2
        recover_leases(DatabaseBroker(), now, RunConfigs())
    execution.refresh_from_db()
    assert (execution.state, execution.attempt) == ("failed", 3)


def test_interrupted_attempts_do_not_count() -> None:
    execution = ManualExecutionFactory()
    assert settled(started(execution), Interrupted(signal=15)) is State.QUEUED
    assert settled(started(execution, 2), Failed("E", "no")) is State.RETRYING
    assert settled(started(execution, 3), Failed("E", "no")) is State.FAILED
    execution.refresh_from_db()
    assert (execution.attempt, execution.retry_count) == (3, 1)
    outcomes = list(Attempt.objects.order_by("number").values_list("outcome", flat=True))
    assert outcomes == ["interrupted", "failed", "failed"]


def test_a_cancelled_run_that_fails_is_not_retried() -> None:
    execution = ManualExecutionFactory()
    ended = started(execution)
    SchedulerExecution.objects.filter(pk=execution.pk).update(cancel_requested_by="ann")
    assert settled(ended, Failed("E", "no")) is State.CANCELLED
    execution.refresh_from_db()
    assert execution.reason == "Cancelled by ann."


def test_a_success_is_recorded_although_a_cancel_was_requested() -> None:
    execution = ManualExecutionFactory()
    ended = started(execution)
    SchedulerExecution.objects.filter(pk=execution.pk).update(cancel_requested_by="ann")
    assert settled(ended, Succeeded()) is State.SUCCEEDED


@pytest.mark.parametrize(
    ("outcome", "state"),
    [(Crashed(signal=9), "retrying"), (Cancelled("ann"), "cancelled"), (Failed("E", "x", retryable=False), "failed")],
)
def test_every_outcome_is_recorded(outcome: object, state: str) -> None:
    execution = ManualExecutionFactory()
    settled(started(execution), outcome)
    execution.refresh_from_db()
    attempt = Attempt.objects.get()
    assert (execution.state, attempt.outcome, attempt.pid) == (state, outcome.name, 4711)  # type: ignore[attr-defined]
    assert attempt.finished_at >= attempt.started_at


@pytest.mark.django_db(transaction=True)  # the signal is sent after the transaction
def test_failure_signal_is_sent_once_and_survives_a_bad_receiver(caplog: pytest.LogCaptureFixture) -> None:
    execution = ManualExecutionFactory()
    heard = []

    def good(**facts: object) -> None:
        heard.append(facts["execution_id"])

    def bad(**facts: object) -> None:
        raise RuntimeError("alerting is down")

    execution_failed.connect(bad)
    execution_failed.connect(good)
    try:
        ended = started(execution)
        for _ in range(2):
            with transaction.atomic():
                result = settle_attempt(ended, Failed("E", "no", retryable=False), POLICY, clock.now(), embedded=True)
            announce(result, TaskMessage("worker", 1), "x")
    finally:
        execution_failed.disconnect(bad)
        execution_failed.disconnect(good)
    assert heard == [execution.pk]
    assert sum("PERMANENTLY FAILED TASK" in record.getMessage() for record in caplog.records) == 1
    assert any("alerting is down" in record.getMessage() for record in caplog.records)


def test_characters_that_databases_refuse_are_removed() -> None:
    execution = ManualExecutionFactory()
    nasty = "\x00 \ud800 " + "y" * 100_000
    settled(started(execution), Failed("E\x00", nasty, nasty, retryable=False))
    execution.refresh_from_db()
    assert "\x00" not in execution.error_message
    assert "left out" in execution.error_message
