"""The tests check what both transports must do for producers, consumers and the failed inbox."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone as clock

from scheduling.broker import Broker
from scheduling.core.outcome import Failed, Interrupted
from scheduling.core.retry import RetryPolicy
from scheduling.execution import transitions
from scheduling.execution.cancel import cancel
from scheduling.execution.publish import publish
from scheduling.execution.run_now import run_now
from scheduling.inbox.actions import discard, republish
from scheduling.models import Attempt, SchedulerExecution
from scheduling.models.execution import message_of
from tests.contract.conftest import Connect
from tests.contract.desk import ERROR, Desk
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import wait_for

pytestmark = pytest.mark.django_db(transaction=True)

NEVER = RetryPolicy(max_retries=0)


def row(execution: SchedulerExecution) -> SchedulerExecution:
    execution.refresh_from_db()
    return execution


def published(broker: Broker, **columns: object) -> SchedulerExecution:
    execution = run_now(SchedulerFactory(rare=True, params={}, **columns), broker)
    assert row(execution).state == "queued"
    assert execution.published_at is not None
    return execution


def test_a_published_execution_starts_once_and_its_message_is_gone_afterwards(connect: Connect) -> None:
    broker = connect()
    execution = published(broker)
    assert broker.counts().ready["main"] == 1
    desk = Desk(broker)
    delivery = desk.start()
    message = delivery.message
    assert (message.execution_id, message.attempt, message.execution_key) == (
        execution.pk,
        1,
        execution.execution_key,
    )
    assert (message.type, message.id, message.scheduler_id) == ("worker", execution.target_id, execution.scheduler_id)
    assert message.scheduled_at is not None
    assert abs(message.scheduled_at - execution.scheduled_at) < timedelta(milliseconds=1)
    assert row(execution).state == "running"
    desk.end(delivery)
    assert row(execution).state == "succeeded"
    assert desk.starts_nothing()


def test_many_are_confirmed_and_come_in_order(connect: Connect) -> None:
    broker = connect()
    schedule = SchedulerFactory(rare=True)
    executions = [run_now(schedule, broker) for _ in range(30)]
    desk = Desk(broker, slots=7)
    seen = []
    for _ in executions:
        delivery = desk.start()
        seen.append(delivery.message.execution_id)
        desk.end(delivery)
    assert seen == [execution.pk for execution in executions]


def test_a_copy_is_ignored(connect: Connect) -> None:
    broker = connect()
    execution = published(broker)
    broker.publish([message_of(execution)])
    broker.publish([message_of(execution)])
    desk = Desk(broker)
    desk.run()
    assert desk.starts_nothing()
    assert Attempt.objects.count() == 1


def test_an_execution_may_start_before_its_message_is_confirmed(connect: Connect) -> None:
    broker = connect()
    execution = published(broker)
    SchedulerExecution.objects.update(state="claimed" if not broker.embedded else "queued", published_at=None)
    delivery = Desk(broker).start()
    assert delivery.message.execution_id == execution.pk
    publish([execution], broker)  # the confirm comes after the start
    assert row(execution).state == "running"


def test_a_retry_comes_after_its_delay_with_the_next_number(connect: Connect) -> None:
    broker = connect()
    execution = published(broker)
    desk = Desk(broker)
    desk.run(ERROR)
    assert (row(execution).state, execution.attempt) == ("retrying", 1)
    assert execution.published_at is not None
    due = execution.wake_at
    assert due is not None
    delivery = desk.start()
    assert clock.now() >= due
    assert (delivery.message.attempt, delivery.message.retry_count) == (2, 1)
    assert (row(execution).state, execution.attempt) == ("running", 2)
    desk.end(delivery)
    assert [attempt.outcome for attempt in Attempt.objects.order_by("number")] == ["failed", "succeeded"]


def test_a_retry_without_a_delay_starts_at_once(connect: Connect) -> None:
    broker = connect()
    execution = published(broker)
    desk = Desk(broker)
    desk.run(Failed("Busy", "busy", retry_after_ms=0))
    assert desk.start().message.attempt == 2
    assert row(execution).state == "running"


def test_only_a_random_delay_may_become_shorter(connect: Connect) -> None:
    broker = connect()
    for wanted in (1, 999, 1000, 1001, 3600, 4999):
        assert broker.delay(wanted, "main") >= wanted
    assert broker.delay(0, "main") == 0
    drawn = [broker.delay(4000, "main", True) for _ in range(400)]
    assert 3600 < sum(drawn) / len(drawn) < 4400


def test_a_failure_is_parked_and_counted(connect: Connect) -> None:
    broker = connect()
    execution = published(broker)
    Desk(broker).run(ERROR, NEVER)
    assert row(execution).state == "failed"
    counts = broker.counts()
    assert (counts.failed, counts.ready["main"]) == (1, 0)
    assert broker.embedded or execution.published_at is not None


def test_republish_runs_it_again_and_empties_the_inbox(connect: Connect) -> None:
    broker = connect()
    execution, other = published(broker), published(broker)
    desk = Desk(broker)
    desk.run(ERROR, NEVER)
    desk.run(ERROR, NEVER)
    assert republish([execution.pk], broker, "ann") == [execution.pk]
    assert republish([execution.pk], broker, "bob") == []  # a second operator is too late
    assert broker.counts().failed == 1
    delivery = desk.start()
    assert (delivery.message.execution_id, delivery.message.attempt, delivery.message.retry_count) == (
        execution.pk,
        2,
        0,
    )
    desk.end(delivery)
    assert (row(execution).state, row(other).state) == ("succeeded", "failed")


def test_discard_empties_the_inbox(connect: Connect) -> None:
    broker = connect()
    execution = published(broker)
    Desk(broker).run(ERROR, NEVER)
    assert discard([execution.pk], "ann", "it is known", broker=broker) == [execution.pk]
    assert broker.counts().failed == 0


def test_a_released_message_is_delivered_again(connect: Connect) -> None:
    broker = connect()
    execution = published(broker)
    desk = Desk(broker)

    def taken_and_released() -> list[int | None]:
        with transaction.atomic():  # a consumer does the same after a database error
            deliveries = broker.take(["main"], 1, clock.now())
            broker.release(deliveries)
            return [delivery.message.execution_id for delivery in deliveries]

    assert wait_for(taken_and_released, "it is taken") == [execution.pk]
    assert wait_for(taken_and_released, "it is taken again") == [execution.pk]
    desk.run()
    assert desk.starts_nothing()


def test_messages_of_a_consumer_that_stops_go_to_another_consumer(connect: Connect) -> None:
    first, second = connect(), connect()
    leaving = Desk(first, name="leaving")
    executions = [published(second) for _ in range(3)]
    leaving.broker.consume({"main": 0})
    staying = Desk(second, name="staying")
    for _ in executions:
        staying.run()
    assert SchedulerExecution.objects.filter(state="succeeded", consumer="staying").count() == 3


def test_an_interrupted_attempt_does_not_count(connect: Connect) -> None:
    broker = connect()
    execution = published(broker)
    desk = Desk(broker)
    desk.run(Interrupted())
    assert (row(execution).state, execution.attempt, execution.retry_base) == ("queued", 1, 1)
    delivery = desk.start()
    assert (delivery.message.attempt, delivery.message.retry_count) == (2, 0)
    desk.end(delivery)
    assert desk.starts_nothing()


def test_a_cancelled_execution_does_not_retry(connect: Connect) -> None:
    broker = connect()
    execution = published(broker)
    desk = Desk(broker)
    desk.run(ERROR)
    assert cancel(execution.pk, "ann") == "cancelled"
    other = published(broker)  # this execution starts, so the consumer still takes messages
    late = clock.now() + timedelta(seconds=1.2)
    wait_for(lambda: clock.now() > late and desk.look() is not None, "the retry would be due")
    assert row(execution).state == "cancelled"
    assert row(other).state == "running"
    assert Attempt.objects.count() == 1


def test_retries_of_standalone_executions_stay_in_their_queue(connect: Connect) -> None:
    broker, alone = connect(), connect()
    execution = published(broker, stay_alive=True)
    ordinary = published(broker)
    standalone, main = Desk(alone, "standalone"), Desk(broker)
    assert standalone.run(ERROR).ended.execution_id == execution.pk
    assert main.run().ended.execution_id == ordinary.pk
    again = standalone.start()
    assert (again.message.execution_id, again.message.attempt) == (execution.pk, 2)
    assert main.starts_nothing()


def test_the_immediate_queue_retries_without_a_delay(connect: Connect) -> None:
    broker = connect()
    state = "queued" if broker.embedded else "claimed"
    execution = ManualExecutionFactory(queue="immediate", state=state)
    publish([execution], broker)
    desk = Desk(broker, "immediate")
    for attempt in (1, 2):
        delivery = desk.start()
        assert row(execution).attempt == attempt
        settled = desk.end(delivery, ERROR)
        assert settled.retry is not None
        assert settled.retry.delay_ms == 0
    last = desk.start()
    assert last.message.retry_count == 2
    desk.end(last, ERROR)
    assert row(execution).state == "failed"
    assert broker.counts().failed == 1


def test_a_consumer_that_stood_aside_gets_messages_again(connect: Connect) -> None:
    """A consumer takes nothing while its clock is wrong or its database is held. Then it goes on at once."""
    broker = connect()

    def taken() -> int | None:
        with transaction.atomic():
            found = broker.take(["main"], 1, clock.now())
            for delivery in found:
                transitions.start(
                    int(delivery.message.execution_id or 0), 1, delivery.message.execution_key, "consumer",
                    clock.now(), clock.now(),
                )  # fmt: skip
                broker.acknowledge(delivery)
        return found[0].message.execution_id if found else None

    for number in range(2):
        broker.consume({"main": 1})
        execution = published(broker)
        assert wait_for(taken, f"message {number} is brought", 8.0) == execution.pk
        broker.consume({"main": 0})
