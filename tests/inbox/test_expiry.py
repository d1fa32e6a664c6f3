"""Failures leave the inbox by their age only if an age is set. The next pass makes good a kill between two steps."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.test import override_settings
from django.utils import timezone as clock

from scheduling.broker import BrokerUnavailable, Counts, FailedQueueBusy, Parked
from scheduling.broker.database import DatabaseBroker
from scheduling.core.messages import encode
from scheduling.core.retention import Rule
from scheduling.execution.retention import expiry, prune
from scheduling.execution.retention.prune import all_released
from scheduling.inbox.actions import republish
from scheduling.inbox.failed_messages import FailedMessages
from scheduling.inbox.sync import sync
from scheduling.models import Replay, SchedulerExecution
from scheduling.models.execution import message_of
from tests.execution.retention import keys, left, make_executions
from tests.factories import SchedulerFactory

pytestmark = pytest.mark.django_db

TEN = timedelta(days=10)


class QueueOnly(DatabaseBroker):
    """A transport with a failed queue in memory. `away` makes it unreachable, `busy` makes another process hold
    it, and `loses_answers` loses the acknowledgements of messages."""

    has_failed_queue = True

    def __init__(self, rows: Sequence[SchedulerExecution] = ()) -> None:
        self.queue = [Parked(encode(message_of(row))) for row in rows]
        self.away = self.busy = self.loses_answers = False
        self.seen_at_most: int | None = None

    def counts(self, queues: Iterable[str] = ()) -> Counts:
        if self.away:
            raise BrokerUnavailable("no answer")
        return Counts({}, len(self.queue))

    @contextmanager
    def failed_queue(self) -> Iterator[Any]:
        if self.busy:
            raise FailedQueueBusy("another process")
        yield _Session(self)


class _Session:
    def __init__(self, broker: QueueOnly) -> None:
        self.broker = broker
        self.messages = list(broker.queue[: broker.seen_at_most])

    def remove(self, parked: Sequence[Parked]) -> None:
        if not self.broker.loses_answers:
            self.broker.queue = [message for message in self.broker.queue if message not in parked]

    def identify(self, parked: Sequence[Parked]) -> list[Parked]:
        return []


def failures(number: int = 3, age: timedelta = TEN, **columns: Any) -> list[SchedulerExecution]:
    rows = make_executions("failed", number, age, SchedulerFactory(rare=True, **columns))
    SchedulerExecution.objects.filter(pk__in=keys(rows)).update(published_at=clock.now() - age)
    return rows


def clean(broker: QueueOnly | None = None) -> Any:
    """One pass, with an age of failures of five days."""
    with override_settings(CRON_RETENTION_FAILED_DAYS="5"):
        if broker is None:
            return prune(clock.now())
        return prune(clock.now(), released=FailedMessages(lambda: broker, clock.now()).released)


def test_nothing_leaves_the_inbox_until_an_age_is_set() -> None:
    rows = failures(age=timedelta(days=3000))
    assert prune(clock.now(), 1).executions == 0
    assert left(rows) == keys(rows)


def test_old_failures_leave_the_inbox() -> None:
    old, young = failures(), failures(age=timedelta(days=3))
    with override_settings(CRON_RETENTION_FAILED_DAYS="5"):
        assert prune(clock.now(), dry_run=True).rules == {Rule.FAILED: 3}
        assert left(old) == keys(old)
    assert clean().rules == {Rule.FAILED: 3}
    assert left(old + young) == keys(young)


def test_a_schedule_has_its_own_age_of_failures() -> None:
    short, long = failures(keep_failed_days=2), failures(keep_failed_days=500)
    assert prune(clock.now()).rules == {Rule.FAILED: 3}
    assert left(short + long) == keys(long)
    assert clean().rules == {}


def test_failures_of_an_open_replay_stay() -> None:
    rows = failures()
    replay = Replay.objects.create(
        key=uuid.uuid4(), requested_by="ann", created_at=clock.now(), selection="all", state="waiting"
    )
    assert clean().rules == {}
    Replay.objects.filter(pk=replay.pk).update(state="done", finished_at=clock.now())
    assert clean().rules == {Rule.FAILED: 3}
    assert left(rows) == []


def test_a_failure_that_is_republished_meanwhile_stays() -> None:
    rows = failures()
    assert republish([rows[0].pk], DatabaseBroker(), "ann") == [rows[0].pk]
    assert expiry.mark([(row.pk, 5) for row in rows], clock.now()) == 2
    SchedulerExecution.objects.filter(pk=rows[0].pk).update(state="failed", finished_at=clock.now())
    assert expiry.mark([(rows[0].pk, 5)], clock.now()) == 0  # it has failed again
    clean()
    assert left(rows) == [rows[0].pk]


def test_the_message_goes_in_the_same_pass() -> None:
    rows, others = failures(), failures(age=timedelta(days=1))
    broker = QueueOnly([*rows, *others])
    assert clean(broker).rules == {Rule.FAILED: 3}
    assert len(broker.queue) == len(others)
    assert left(rows + others) == keys(others)
    assert sync(broker, clock.now()).rows == 0


def test_a_kill_after_the_mark_is_made_good_by_a_sync_and_the_next_pass() -> None:
    rows = failures()
    broker = QueueOnly(rows)
    expiry.mark([(row.pk, 5) for row in rows], clock.now())  # the process is killed here
    assert (sync(broker, clock.now()).rows, len(broker.queue)) == (0, 0)  # no new row in the inbox
    assert left(rows) == keys(rows)
    assert clean(broker).rules == {Rule.FAILED: 3}
    assert left(rows) == []


def test_the_next_pass_makes_good_a_kill_alone_even_without_an_age() -> None:
    rows = failures()
    broker = QueueOnly(rows)
    expiry.mark([(row.pk, 5) for row in rows], clock.now())
    done = prune(clock.now(), released=FailedMessages(lambda: broker, clock.now()).released)
    assert (done.rules, broker.queue, left(rows)) == ({Rule.FAILED: 3}, [], [])


@pytest.mark.parametrize("fault", ["away", "busy"])
@pytest.mark.parametrize("age", [TEN, timedelta(days=400)])  # the second is above the age of discarded executions
def test_a_row_stays_while_its_message_may_be_in_the_queue(fault: str, age: timedelta) -> None:
    rows = failures(age=age)
    broker = QueueOnly(rows)
    setattr(broker, fault, True)
    done = clean(broker)
    assert (done.executions, done.held >= 3) == (0, True)
    assert left(rows) == keys(rows)
    assert not expiry.failures().filter(pk__in=keys(rows)).exists()
    setattr(broker, fault, False)
    assert clean(broker).rules == {Rule.FAILED: 3}
    assert (broker.queue, left(rows)) == ([], [])


def test_a_queue_that_cannot_be_read_to_its_end_proves_nothing() -> None:
    rows, live = failures(2), failures(2, timedelta(days=1))
    broker = QueueOnly([*live, *rows])
    broker.seen_at_most = 2
    assert clean(broker).held == 2
    assert left(rows) == keys(rows)


def test_a_row_stays_if_the_acknowledgement_of_its_message_is_lost() -> None:
    rows = failures(2)
    other = make_executions("discarded", 1, trigger="message", execution_key="message-m1")
    broker = QueueOnly(rows)
    broker.queue.append(Parked(b"no json", "m1"))
    broker.loses_answers = True
    assert clean(broker).rules == {}
    assert left(rows + other) == keys(rows + other)
    broker.loses_answers = False
    assert clean(broker).executions == 3
    assert (broker.queue, left(rows + other)) == ([], [])


def test_an_execution_that_an_operator_discarded_waits_for_its_message_too() -> None:
    rows = make_executions("discarded", 2)
    broker = QueueOnly(rows)
    broker.away = True
    assert clean(broker).held == 2
    broker.away = False
    assert clean(broker).rules == {Rule.ENDED: 2}
    assert broker.queue == []


def test_a_message_of_another_database_holds_no_row() -> None:
    """It has the id of a row, but another execution key. It gets a row of its own."""
    rows = make_executions("discarded", 1)
    foreign = message_of(rows[0])
    body = encode(foreign).replace(foreign.execution_key.encode(), b"cron-1999-1-1-0-0")
    broker = QueueOnly()
    broker.queue = [Parked(body, "other")]
    assert clean(broker).rules == {Rule.ENDED: 1}
    assert SchedulerExecution.objects.get(execution_key="message-other").state == "failed"


def test_the_broker_is_not_asked_without_need() -> None:
    def connect() -> QueueOnly:
        raise AssertionError("nothing discarded is to be removed")

    make_executions("succeeded", 2)
    assert prune(clock.now(), released=FailedMessages(connect, clock.now()).released).executions == 2
    assert all_released([1, 2]) == {1, 2}
