"""On both transports, a batch that gathers takes further runs of its own origin, and leaves all others alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.broker import Broker, Delivery
from scheduling.broker.database import DatabaseBroker
from scheduling.broker.near_rows import LOOK_AHEAD
from scheduling.core.origin import Origin
from scheduling.execution.publish import publish
from scheduling.models import Scheduler, SchedulerExecution
from tests.contract.conftest import Connect
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import at_once, wait_for

pytestmark = pytest.mark.django_db(transaction=True)


def published(broker: Broker, *schedules: Scheduler, queue: str = "main") -> list[SchedulerExecution]:
    """Make a run of each schedule, and publish their messages in this order."""
    state, now = "queued" if broker.embedded else "claimed", clock.now()
    rows = [
        ManualExecutionFactory(
            scheduler=schedule, queue=queue, state=state, published_at=None, wake_at=now - timedelta(seconds=9),
            scheduled_at=now - timedelta(seconds=50 - number),
        )
        for number, schedule in enumerate(schedules)
    ]  # fmt: skip
    publish(rows, broker)
    return rows


def taken(broker: Broker, queue: str, limit: int, wanted: Any = None) -> list[Delivery]:
    """Take what the transport has."""
    with transaction.atomic():
        return broker.take([queue], limit, clock.now(), wanted)


def ids(deliveries: list[Delivery]) -> list[int | None]:
    """The executions of the deliveries."""
    return [delivery.message.execution_id for delivery in deliveries]


def all_there(broker: Any, number: int) -> bool:
    """Whether the transport has brought so many messages."""
    return broker.embedded or sum(map(len, broker._client.subscription.buffer._waiting.values())) == number


def test_it_takes_the_runs_of_one_origin_and_leaves_the_others_in_their_order(connect: Connect) -> None:
    broker = connect()
    one, other = SchedulerFactory(rare=True, handler="tests.batch"), SchedulerFactory(rare=True)
    broker.declare([], "main", "reports")
    broker.consume({"main": 20, "reports": 20})
    rows = published(broker, one, other, one, other, one, one)
    elsewhere = published(broker, one, queue="reports")
    wait_for(lambda: all_there(broker, 7), "all messages arrive")
    asked: set[Origin] = set()

    def wanted(origin: Origin) -> bool:
        asked.add(origin)
        return origin.scheduler_id == one.pk

    first = taken(broker, "main", 3, wanted)
    assert ids(first) == [rows[0].pk, rows[2].pk, rows[4].pk]
    assert asked == {Origin("worker", row.worker_id, row.pk, None) for row in (one, other)}
    SchedulerExecution.objects.filter(pk__in=ids(first)).update(state="running")
    last = taken(broker, "main", 3, wanted)
    assert ids(last) == [rows[5].pk]
    SchedulerExecution.objects.filter(pk__in=ids(last)).update(state="running")
    assert taken(broker, "main", 3, wanted) == []
    assert ids(taken(broker, "reports", 3, wanted)) == [elsewhere[0].pk]
    assert ids(taken(broker, "main", 5)[:2]) == [rows[1].pk, rows[3].pk]


def test_the_table_is_not_searched_beyond_its_first_rows() -> None:
    broker = DatabaseBroker()
    one, other = SchedulerFactory(rare=True, handler="tests.batch"), SchedulerFactory(rare=True)
    now = clock.now()
    ManualExecutionFactory.bulk(LOOK_AHEAD - 2, scheduler=other, wake_at=now - timedelta(seconds=9))
    near = ManualExecutionFactory(scheduler=one, wake_at=now - timedelta(seconds=8))
    ManualExecutionFactory(scheduler=other, wake_at=now - timedelta(seconds=7))
    ManualExecutionFactory(scheduler=one, wake_at=now - timedelta(seconds=6))
    with CaptureQueriesContext(
        connection,
    ) as queries:
        found = taken(broker, "main", 10, lambda origin: origin.scheduler_id == one.pk)
    assert ids(found) == [near.pk]
    statements = [query["sql"] for query in queries if query["sql"].startswith("SELECT")]
    assert len(statements) == 4, "the retries, the first rows, the further rows, and the lock"
    assert all("LIMIT" in statement or " IN (" in statement for statement in statements)


def test_two_consumers_take_no_run_twice() -> None:
    one = SchedulerFactory(rare=True, handler="tests.batch")
    rows = ManualExecutionFactory.bulk(60, scheduler=one, wake_at=clock.now() - timedelta(seconds=9))

    def take() -> list[int | None]:
        found: list[int | None] = []
        for _ in range(12):
            with transaction.atomic():
                part = ids(DatabaseBroker().take(["main"], 10, clock.now(), lambda _origin: True))
                SchedulerExecution.objects.filter(pk__in=part).update(state="running")
            found += part
        return found

    parts = at_once([take, take])
    assert sorted(filter(None, [*parts[0], *parts[1]])) == [row.pk for row in rows]
