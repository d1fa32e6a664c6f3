"""The order in which the database transport takes runs of several priorities and queues."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.core.queues import work_queues
from tests.factories import SchedulerExecutionFactory

pytestmark = pytest.mark.django_db(transaction=True)

MAIN = work_queues(["main"])


def taken(broker: DatabaseBroker, limit: int, now: datetime, queues: Sequence[str] = MAIN) -> list[int | None]:
    with transaction.atomic():
        return [delivery.message.execution_id for delivery in broker.take(queues, limit, now)]


@pytest.mark.parametrize(
    ("minutes", "order"),
    [
        ((0, 0, 0), "high normal low"),
        ((0, 6, 0), "normal high low"),  # a normal run overtakes the high ones that come more than 5 minutes later
        ((0, 0, 9), "high low normal"),
        ((0, 4, 11), "low high normal"),  # a low run waits at most ten minutes longer
    ],
)
@pytest.mark.parametrize("retrying", [False, True])
def test_runs_start_in_the_order_of_their_turns(minutes: tuple[int, int, int], order: str, retrying: bool) -> None:
    now = clock.now()
    rows = {
        priority: SchedulerExecutionFactory(queue=queue, wake_at=now - timedelta(minutes=late), retrying=retrying)
        for (priority, queue), late in zip(
            {"high": "main.high", "normal": "main", "low": "main.low"}.items(), minutes, strict=True
        )
    }
    assert taken(DatabaseBroker(), 3, now) == [rows[priority].pk for priority in order.split()]
    one = DatabaseBroker()
    assert [taken(one, 1, now)[0] for _ in order.split()] == [rows[priority].pk for priority in order.split()]


def test_a_delivery_says_from_which_work_queue_it_comes() -> None:
    SchedulerExecutionFactory(queue="reports.low", wake_at=clock.now())
    with transaction.atomic():
        (delivery,) = DatabaseBroker().take(work_queues(["reports"]), 1, clock.now())
    assert delivery.queue == "reports.low"


def test_a_consumer_takes_from_its_queues_only() -> None:
    now = clock.now()
    rows = {queue: SchedulerExecutionFactory(queue=queue, wake_at=now).pk for queue in ("main", "a", "b", "a.high")}
    broker = DatabaseBroker()
    assert taken(broker, 9, now, work_queues(["a"])) == [rows["a.high"], rows["a"]]
    assert taken(DatabaseBroker(), 9, now, work_queues(["b", "main"])) == [rows["main"], rows["b"]]
    assert not broker.ready(work_queues(["c"]), now)
    assert taken(broker, 9, now, work_queues(["c"])) == []


def test_empty_work_queues_cost_no_query_while_there_is_a_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduling.broker.database.READ_AHEAD", 0)
    monkeypatch.setattr("scheduling.broker.database.EMPTY_SECONDS", 3600.0)
    now, broker = clock.now(), DatabaseBroker()
    SchedulerExecutionFactory.create_batch(3, wake_at=now)
    taken(broker, 1, now)
    with CaptureQueriesContext(
        connection,
    ) as first:
        taken(broker, 1, now)
    assert sum("SELECT" in query["sql"] and "main.low" in query["sql"] for query in first.captured_queries) == 0


def test_a_work_queue_that_was_empty_is_read_when_the_others_are_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("scheduling.broker.database.EMPTY_SECONDS", 3600.0)
    now, broker = clock.now(), DatabaseBroker()
    assert taken(broker, 1, now) == []
    low = SchedulerExecutionFactory(queue="main.low", wake_at=now)
    assert broker.ready(MAIN, now)
    assert taken(broker, 1, now) == [low.pk]
