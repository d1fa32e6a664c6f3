"""The sweep for lost messages counts a queue in slices, publishes what is lost, and never what waits."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.broker.base import BrokerUnavailable, Counts
from scheduling.broker.database import DatabaseBroker
from scheduling.core.messages import TaskMessage
from scheduling.execution.publish import publish
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.producer import lost_messages
from scheduling.producer.lost_messages import LostMessages, QueueCount
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import NOON

pytestmark = pytest.mark.django_db

SLICE, LIMIT = 10, 5


class QueueModel(DatabaseBroker):
    """A broker outside of the database: each queue is a list of execution ids, the oldest message first."""

    embedded = False

    def __init__(self) -> None:
        super().__init__()
        self.queues: dict[str, list[int]] = {"main": [], "standalone": [], "immediate": []}
        self.published: list[int] = []
        self.away = False

    def publish(self, messages: Sequence[TaskMessage], queue: str = "main") -> set[int]:
        """Add the messages to the end of the queue, and confirm them."""
        ids = [message.execution_id or 0 for message in messages]
        self.queues[queue] += ids
        self.published += ids
        return set(ids)

    def counts(self, queues: Iterable[str] = ()) -> Counts:
        """Count the messages."""
        if self.away:
            raise BrokerUnavailable("Nothing listens there.")
        return Counts({queue: len(ids) for queue, ids in self.queues.items()}, 0)


@pytest.fixture
def broker() -> QueueModel:
    return QueueModel()


@pytest.fixture(autouse=True)
def small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_messages, "SLICE", SLICE)
    monkeypatch.setattr(lost_messages, "SUSPECTS_LIMIT", LIMIT)


class Time:
    """The time of the test. It stands still until `go_on` is called."""

    def __init__(self) -> None:
        self.instant = NOON

    def now(self) -> datetime:
        return self.instant

    def go_on(self, seconds: float = 2) -> datetime:
        self.instant += timedelta(seconds=seconds)
        return self.instant


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    found = Time()
    monkeypatch.setattr("scheduling.execution.publish.clock", found)
    return found


@pytest.fixture
def schedule(db: None) -> Scheduler:
    return SchedulerFactory(rare=True)


def later(seconds: float = 60) -> datetime:
    return clock.now() + timedelta(seconds=seconds)


def waiting(broker: QueueModel, count: int, scheduler: Scheduler, queue: str = "main") -> list[int]:
    """Make queued rows with their messages. Return their ids, the oldest first."""
    rows = ManualExecutionFactory.bulk(count, scheduler=scheduler, queue=queue, state="claimed", published_at=None)
    publish(rows, broker)
    return [row.pk for row in rows]


def start(ids: Sequence[int]) -> None:
    """Start runs, as a consumer does after it has taken their messages."""
    SchedulerExecution.objects.filter(pk__in=ids).update(state="running", attempt=1, wake_at=later(3600))


def sweeps(lost: LostMessages, broker: QueueModel, number: int) -> list[int]:
    return [lost.sweep(broker, later()) for _ in range(number)]


@pytest.mark.parametrize("same_instant", [True, False])
def test_a_count_over_several_sweeps_is_exact(broker: QueueModel, schedule: Scheduler, same_instant: bool) -> None:
    ids = waiting(broker, 47, schedule)
    if not same_instant:
        for number, pk in enumerate(ids):
            SchedulerExecution.objects.filter(pk=pk).update(wake_at=later(-100 + number))
    count = QueueCount("main", 47, later())
    found = []
    while not count.complete:
        count.go_on()
        found.append(count.rows)
    assert found == [10, 20, 30, 40, 47]


@pytest.mark.parametrize("count", [3, 10, 11, 60])
def test_what_waits_is_not_published_again(broker: QueueModel, schedule: Scheduler, count: int) -> None:
    waiting(broker, count, schedule)
    waiting(broker, 12, schedule, queue="standalone")
    assert set(sweeps(LostMessages(), broker, 25)) == {0}


def test_one_sweep_reads_one_slice(broker: QueueModel, schedule: Scheduler) -> None:
    waiting(broker, 200, schedule)
    lost = LostMessages()
    for _ in range(20):
        with CaptureQueriesContext(connection) as sent:
            lost.sweep(broker, later())
        reads = [query["sql"] for query in sent]
        assert len(reads) <= 8, reads
        assert sum(f"OFFSET {SLICE - 1}" in read for read in reads) <= 3


def test_the_oldest_rows_of_a_long_queue_are_published_again(broker: QueueModel, schedule: Scheduler) -> None:
    ids = waiting(broker, 40, schedule)
    broker.queues["main"] = broker.queues["main"][4:]
    broker.published.clear()
    assert sweeps(LostMessages(), broker, 10) == [0] * 9 + [4]  # each of the two counts takes five sweeps
    assert set(broker.published) == set(ids[:4])
    states = SchedulerExecution.objects.filter(pk__in=ids).values_list("state", flat=True)
    assert set(states) == {"queued"}


def test_a_purged_queue_is_filled_again_at_once(broker: QueueModel, schedule: Scheduler) -> None:
    waiting(broker, 40, schedule)
    broker.queues["main"].clear()
    first, second, third, fourth = sweeps(LostMessages(), broker, 4)
    assert (first, second, third, fourth) == (0, LIMIT, 0, LIMIT)


def test_all_messages_of_a_purged_queue_return(broker: QueueModel, schedule: Scheduler) -> None:
    ids = waiting(broker, 40, schedule)
    broker.queues["main"].clear()
    broker.published.clear()
    sweeps(LostMessages(), broker, 150)
    assert sorted(broker.published) == ids  # and each of them once


def test_runs_that_start_during_a_count_are_not_lost(broker: QueueModel, schedule: Scheduler) -> None:
    waiting(broker, 60, schedule)
    broker.published.clear()
    lost = LostMessages()
    for _ in range(20):
        lost.sweep(broker, later())
        taken, broker.queues["main"] = broker.queues["main"][:3], broker.queues["main"][3:]
        start(taken)
    assert broker.published == []


def test_rows_that_are_queued_during_a_count_do_not_count(broker: QueueModel, schedule: Scheduler, time: Time) -> None:
    """Nothing starts, for example because all consumers are busy."""
    waiting(broker, 35, schedule)
    broker.published.clear()
    lost = LostMessages()
    for _ in range(20):
        waiting(broker, 2, schedule)
        assert lost.sweep(broker, time.go_on()) == 0


def test_a_message_that_is_taken_and_not_started_is_not_published_again(
    broker: QueueModel, schedule: Scheduler
) -> None:
    """It is in no count of the broker, and its row is queued still."""
    waiting(broker, 60, schedule)
    broker.published.clear()
    lost = LostMessages()
    for _ in range(20):
        taken, broker.queues["main"] = broker.queues["main"][:2], broker.queues["main"][2:]
        lost.sweep(broker, later())
        start(taken)
    assert broker.published == []


def test_a_broker_that_does_not_answer_ends_the_counts(broker: QueueModel, schedule: Scheduler) -> None:
    waiting(broker, 5, schedule)
    broker.queues["main"].clear()
    lost = LostMessages()
    assert sweeps(lost, broker, 1) == [0]
    broker.away = True
    assert sweeps(lost, broker, 1) == [0]
    assert not lost.broker_answers
    broker.away = False
    assert sweeps(lost, broker, 2) == [0, 5]
    assert lost.broker_answers


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_random_traffic(broker: QueueModel, schedule: Scheduler, time: Time, seed: int) -> None:
    """Rows are published and start in random amounts. Nothing is published again until something is lost."""
    pick, lost = random.Random(seed), LostMessages()
    waiting(broker, pick.randrange(0, 120), schedule)

    def traffic() -> None:
        for _ in range(pick.randrange(0, 4)):
            waiting(broker, pick.randrange(1, 5), schedule)
            time.go_on(0.5)
        amount = pick.randrange(0, 12)
        taken, broker.queues["main"] = broker.queues["main"][:amount], broker.queues["main"][amount:]
        start(taken)

    for _ in range(40):
        traffic()
        assert lost.sweep(broker, time.go_on()) == 0
    for _ in range(pick.randrange(0, 30)):
        if broker.queues["main"]:
            broker.queues["main"].pop(0)
    for _ in range(400):
        taken, broker.queues["main"] = broker.queues["main"][:2], broker.queues["main"][2:]
        start(taken)
        lost.sweep(broker, time.go_on())
    assert not SchedulerExecution.objects.filter(state="queued").exists()
