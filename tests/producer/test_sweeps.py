"""Sweeps repair rows that a crash left between two steps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.core.messages import TaskMessage
from scheduling.execution.claim import claim_due
from scheduling.execution.publish import publish
from scheduling.models import SchedulerExecution
from scheduling.producer.sweeps import sweep
from tests.factories import ManualExecutionFactory, SchedulerFactory, due
from tests.support import NOON

pytestmark = pytest.mark.django_db


class RecordingBroker(DatabaseBroker):
    """A transport outside the database, like RabbitMQ. `confirms` says whether the transport confirms messages."""

    embedded = False

    def __init__(self, confirms: bool = True) -> None:
        super().__init__()
        self.confirms = confirms
        self.published: list[TaskMessage] = []

    def publish(self, messages: Sequence[TaskMessage], queue: str = "main") -> set[int]:
        """Record the messages."""
        self.published += messages
        return {message.execution_id or 0 for message in messages} if self.confirms else set()

    def ready(self, queue: str, now: datetime) -> bool:
        """This method is not called in these tests."""
        return False


def test_what_was_claimed_and_never_confirmed_is_published_again() -> None:
    due(SchedulerFactory(schedule="0 12 * * *"), NOON)
    deaf, broker = RecordingBroker(confirms=False), RecordingBroker()
    assert publish(claim_due(NOON, embedded=False).claimed, deaf) == 0
    row = SchedulerExecution.objects.get()
    assert row.state == "claimed"
    assert sweep(broker, NOON + timedelta(seconds=5)).claims == 0  # the producer could still publish
    assert sweep(broker, NOON + timedelta(seconds=11)).claims == 1
    row.refresh_from_db()
    assert row.state == "queued"
    assert [message.execution_id for message in broker.published] == [row.pk]


def test_a_confirm_marks_it_queued_once() -> None:
    due(SchedulerFactory(schedule="0 12 * * *"), NOON)
    broker = RecordingBroker()
    assert publish(claim_due(NOON, embedded=False).claimed, broker) == 1
    assert sweep(broker, NOON + timedelta(minutes=5)).claims == 0
    assert len(broker.published) == 1
    assert broker.published[0].attempt == 1


def test_a_retry_that_did_not_come_back_is_published() -> None:
    now = clock.now()
    row = ManualExecutionFactory(state="retrying", attempt=1, wake_at=now, published_at=None)
    broker = RecordingBroker()
    assert sweep(broker, now + timedelta(seconds=5)).retries == 0
    assert sweep(broker, now + timedelta(seconds=11)).retries == 1
    row.refresh_from_db()
    assert (row.state, broker.published[0].attempt, broker.published[0].retry_count) == ("queued", 2, 1)


def test_rows_claimed_for_a_broker_that_is_no_longer_set_run_embedded() -> None:
    row = ManualExecutionFactory(state="claimed", wake_at=clock.now() - timedelta(minutes=1))
    sweep(DatabaseBroker(), clock.now())
    row.refresh_from_db()
    assert row.state == "queued"
