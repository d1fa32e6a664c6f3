"""Tests of what happens before an attempt starts."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone as clock

from scheduling.broker import Delivery
from scheduling.consumer.start import begin
from scheduling.core.lifecycle import State
from scheduling.core.messages import TaskMessage
from scheduling.models.execution import message_of
from tests.factories import ManualExecutionFactory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("from_row", [True, False])
def test_no_attempt_starts_if_its_preparation_fails(from_row: bool) -> None:
    """A single start has no transaction that could take it back."""
    rows = [ManualExecutionFactory(state=State.QUEUED.value) for _number in range(2)]
    seen: list[int | None] = []

    def fail(messages: list[TaskMessage]) -> None:
        seen.extend(message.execution_id for message in messages)
        raise RuntimeError("no configuration")

    now = clock.now()
    deliveries = [Delivery(message_of(row), from_row=from_row) for row in rows]
    with pytest.raises(RuntimeError, match="no configuration"):
        begin(deliveries, "desk", now, now + timedelta(seconds=15), prepare=fail)
    assert seen == [row.pk for row in rows]
    for row in rows:
        row.refresh_from_db()
        assert (row.state, row.attempt) == (State.QUEUED.value, 0)


def test_a_retry_whose_time_cannot_be_read_is_due() -> None:
    """MariaDB returns NULL for 0000-00-00. The run must not be lost."""
    row = ManualExecutionFactory(retrying=True, wake_at=None)
    now = clock.now()
    message = message_of(ManualExecutionFactory._meta.model.objects.get(pk=row.pk))
    again = Delivery(TaskMessage(**(vars(message) | {"attempt": row.attempt})))
    (arrival,) = begin([again], "desk", now, now + timedelta(seconds=15))
    assert arrival.started
    assert arrival.delivery.message.attempt == row.attempt + 1
