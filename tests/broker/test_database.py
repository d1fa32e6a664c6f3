"""Tests of the order in which the database transport returns executions."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone as clock

from scheduling.broker.database import READ_AHEAD, DatabaseBroker
from tests.factories import SchedulerExecutionFactory

pytestmark = pytest.mark.django_db(transaction=True)


def taken(limit: int) -> list[int | None]:
    with transaction.atomic():
        return [delivery.message.execution_id for delivery in DatabaseBroker().take("main", limit, clock.now())]


@pytest.mark.parametrize("retries", [0, 3, READ_AHEAD * 2])
def test_a_recovered_run_goes_before_the_backlog_and_before_other_retries(retries: int) -> None:
    """With many due retries, the recovered one is not among the oldest ones."""
    past = clock.now() - timedelta(hours=1)
    backlog = [SchedulerExecutionFactory(wake_at=past + timedelta(seconds=number)) for number in range(3)]
    for number in range(retries):
        SchedulerExecutionFactory(retrying=True, wake_at=past - timedelta(seconds=number + 1))
    recovered = SchedulerExecutionFactory(retrying=True, error_class="Crashed", wake_at=clock.now())
    waits = SchedulerExecutionFactory(retrying=True, error_class="Crashed", wake_at=clock.now() + timedelta(minutes=1))
    ids = taken(retries + 10)
    assert ids[0] == recovered.pk
    assert ids[-3:] == [row.pk for row in backlog]
    assert len(ids) == len(set(ids)) == retries + 4
    assert waits.pk not in ids
    assert taken(1) == [recovered.pk]
