"""A consumer whose database is replaced by a copy neither starts nor settles anything, also between two heartbeats."""

from __future__ import annotations

import pytest
from django.utils import timezone as clock

from scheduling.core.deployment import Held
from scheduling.handlers.targets import sync_targets
from scheduling.models import Attempt, Deployment, SchedulerExecution
from tests.factories import ManualExecutionFactory
from tests.hostile.turn import SLOTS, Consumer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def consumer() -> Consumer:
    sync_targets()
    made = Consumer(set())
    ManualExecutionFactory(wake_at=clock.now())
    assert made.turn(clock.now()) == 1
    return made


def copy() -> None:
    """Make the database that of another deployment."""
    Deployment.objects.update(name="production", fingerprints="0" * 32)


def test_nothing_is_settled_in_a_copy(consumer: Consumer) -> None:
    copy()
    with pytest.raises(Held, match="production"):
        consumer.turn(clock.now())
    assert list(SchedulerExecution.objects.values_list("state", flat=True)) == ["running"]
    assert list(Attempt.objects.values_list("outcome", flat=True)) in ([], [""])


def test_nothing_starts_in_a_copy(consumer: Consumer) -> None:
    waits = ManualExecutionFactory(wake_at=clock.now())
    copy()
    with pytest.raises(Held, match="production"):
        consumer.writer.write([], SLOTS, clock.now())
    waits.refresh_from_db()
    assert (waits.state, waits.attempt) == ("queued", 0)
