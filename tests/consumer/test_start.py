"""Tests of what happens before an attempt starts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.broker import Delivery
from scheduling.consumer.start import begin
from scheduling.core.lifecycle import State, Trigger
from scheduling.core.messages import TaskMessage, decode, encode
from scheduling.models import SchedulerExecution
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
    assert set(seen) == {row.pk for row in rows}
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


def decoded(row: SchedulerExecution, **changes: Any) -> Delivery:
    """A delivery of the row's message, as a broker returns it, with other values in some fields."""
    return Delivery(decode(encode(replace(message_of(row), **changes))))


def is_direct() -> bool:
    return connection.vendor == "postgresql" or getattr(connection, "mysql_is_mariadb", False)


PARAMS = {"b": [1, 2.5, None, {"ä": "Ö"}], "a": True, "": "1e22", "large": 2**62, "small": 1e-9}


@pytest.mark.parametrize("trigger", [trigger.value for trigger in Trigger])
@pytest.mark.parametrize("headers", [None, {"trace": "ä", "A": "1"}])
def test_a_message_that_says_what_the_row_says_is_started_with_one_statement(
    headers: dict[str, str] | None, trigger: str
) -> None:
    row = ManualExecutionFactory(state=State.QUEUED.value, params=PARAMS, headers=headers, trigger=trigger)
    now = clock.now()
    with CaptureQueriesContext(connection) as captured:
        (arrival,) = begin([decoded(row)], "desk", now, now + timedelta(seconds=15))
    assert arrival.started
    assert len(captured) == (1 if is_direct() else 2)
    row.refresh_from_db()
    assert (row.state, row.attempt, row.consumer, row.started_at) == (State.RUNNING.value, 1, "desk", now)
    message = arrival.delivery.message
    assert (message.params, message.scheduled_at, message.attempt) == (PARAMS, row.scheduled_at, 1)
    assert message.headers == (headers or {})
    (copy,) = begin([decoded(row, attempt=1)], "another", now, now + timedelta(seconds=15))
    assert not copy.started


CHANGES: list[dict[str, Any]] = [
    {"params": {"a": 1.0}},
    {"params": {"A": 1}},
    {"params": {}},
    {"trigger": "cron"},
    {"retry_count": 3},
    {"scheduler_id": None},
    {"headers": {}},
    {"headers": {"Trace": "1"}},
    {"headers": {"trace": "2"}},
    {"scheduler_id": 2**62},
    {"scheduled_at": datetime(2026, 1, 1, tzinfo=UTC)},
]


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_a_run_has_the_values_of_its_row(changes: dict[str, Any]) -> None:
    row = ManualExecutionFactory(state=State.QUEUED.value, params={"a": 1}, headers={"trace": "1"})
    expected = message_of(row)
    now = clock.now()
    (arrival,) = begin([decoded(row, **changes)], "desk", now, now + timedelta(seconds=15))
    assert arrival.started
    assert arrival.delivery.message == expected
    assert type(arrival.delivery.message.params["a"]) is int


FOREIGN: list[dict[str, Any]] = [{"id": 2**62}, {"type": "report"}, {"execution_key": "another"}]


@pytest.mark.parametrize("changes", [*FOREIGN, {"execution_key": str.upper}, {"execution_key": "é"}], ids=str)
def test_a_message_of_another_key_or_target_starts_nothing(changes: dict[str, Any]) -> None:
    row = ManualExecutionFactory(state=State.QUEUED.value)
    if changes.get("execution_key") is str.upper:
        changes = {"execution_key": row.execution_key.upper()}
    now = clock.now()
    (arrival,) = begin([decoded(row, **changes)], "desk", now, now + timedelta(seconds=15))
    assert not arrival.started
    assert arrival.foreign
    row.refresh_from_db()
    assert (row.state, row.attempt) == (State.QUEUED.value, 0)
