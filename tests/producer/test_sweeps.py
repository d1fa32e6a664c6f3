"""A sweep continues the work that a crash has interrupted."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.execution.claim import claim_due
from scheduling.execution.publish import publish
from scheduling.models import SchedulerExecution
from scheduling.producer.sweeps import sweep
from tests.factories import ManualExecutionFactory, SchedulerFactory, due
from tests.producer.recording_broker import RecordingBroker
from tests.support import NOON

pytestmark = pytest.mark.django_db


def test_an_execution_without_a_confirm_is_published_again() -> None:
    due(SchedulerFactory(schedule="0 12 * * *"), NOON)
    without_confirms, broker = RecordingBroker(confirms=False), RecordingBroker()
    assert publish(claim_due(NOON, embedded=False).claimed, without_confirms) == 0
    row = SchedulerExecution.objects.get()
    assert row.state == "claimed"
    assert sweep(broker, NOON + timedelta(seconds=5)).claims == 0  # too early: the producer may still publish it
    assert sweep(broker, NOON + timedelta(seconds=11)).claims == 1
    row.refresh_from_db()
    assert row.state == "queued"
    assert [message.execution_id for message in broker.published] == [row.pk]


def test_a_confirmed_execution_is_not_published_again() -> None:
    due(SchedulerFactory(schedule="0 12 * * *"), NOON)
    broker = RecordingBroker()
    assert publish(claim_due(NOON, embedded=False).claimed, broker) == 1
    assert sweep(broker, NOON + timedelta(minutes=5)).claims == 0
    assert len(broker.published) == 1
    assert broker.published[0].attempt == 1


def test_an_overdue_retry_is_published() -> None:
    now = clock.now()
    row = ManualExecutionFactory(state="retrying", attempt=1, wake_at=now, published_at=None)
    broker = RecordingBroker()
    assert sweep(broker, now + timedelta(seconds=5)).retries == 0
    assert sweep(broker, now + timedelta(seconds=11)).retries == 1
    row.refresh_from_db()
    assert (row.state, broker.published[0].attempt, broker.published[0].retry_count) == ("queued", 2, 1)


def test_claimed_rows_are_queued_after_a_change_to_the_database_transport() -> None:
    row = ManualExecutionFactory(state="claimed", wake_at=clock.now() - timedelta(minutes=1))
    sweep(DatabaseBroker(), clock.now())
    row.refresh_from_db()
    assert row.state == "queued"
