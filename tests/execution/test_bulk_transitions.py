"""Many attempts are started and settled with few statements, and each is compared by itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.broker import Delivery
from scheduling.consumer.start import MANY, begin
from scheduling.execution.bulk_transitions import settle_succeeded, start_many
from scheduling.execution.transitions import BatchLink, Ended, Entry, record_attempts
from scheduling.models import Attempt, SchedulerExecution
from scheduling.models.execution import message_of
from tests.factories import ManualExecutionFactory

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


def rows_with(*changes: dict[str, Any]) -> list[SchedulerExecution]:
    """Waiting executions, with these columns."""
    rows = ManualExecutionFactory.bulk(len(changes), wake_at=clock.now() - MINUTE)
    for row, columns in zip(rows, changes, strict=True):
        if columns:
            SchedulerExecution.objects.filter(pk=row.pk).update(**columns)
    return rows


def test_only_those_start_whose_rows_wait_for_this_attempt() -> None:
    rows = rows_with(
        {}, {"attempt": 1}, {"execution_key": "another"}, {"state": "running"}, {"state": "cancelled"},
        {"state": "retrying", "attempt": 2}, {"state": "claimed"}, {"execution_key": "a third"},
    )  # fmt: skip
    messages = [message_of(row) for row in rows]
    messages[5] = message_of(SchedulerExecution.objects.get(pk=rows[5].pk))
    now = clock.now()
    with transaction.atomic(), CaptureQueriesContext(connection) as queries:
        started = start_many([*messages, messages[0]], "one", now, now + MINUTE)
    assert started == {rows[0].pk, rows[5].pk, rows[6].pk}
    assert len(queries) == 3, "one lock, and one update for each number of an attempt"
    found = {row.pk: row for row in SchedulerExecution.objects.all()}
    assert [found[row.pk].attempt for row in rows] == [1, 1, 0, 0, 0, 3, 1, 0]
    for pk in started:
        row = found[pk]
        assert (row.state, row.consumer, row.started_at, row.wake_at) == ("running", "one", now, now + MINUTE)


@pytest.mark.parametrize("from_row", [True, False])
def test_of_two_copies_one_starts(from_row: bool) -> None:
    rows = rows_with(*[{}] * MANY)
    found = [Delivery(message_of(row), from_row=from_row) for row in SchedulerExecution.objects.order_by("pk")]
    now = clock.now()
    copies = [replace(delivery) for delivery in found]
    with transaction.atomic():
        arrivals = begin([*found, *copies], "one", now, now + MINUTE)
    assert [arrival.started for arrival in arrivals] == [True] * MANY + [False] * MANY
    assert SchedulerExecution.objects.filter(state="running", attempt=1).count() == len(rows)


def test_only_those_are_settled_that_this_attempt_owns() -> None:
    now = clock.now()
    running = {"state": "running", "attempt": 1, "consumer": "one", "wake_at": now + MINUTE, "error_class": "Old"}
    rows = rows_with(
        running, running | {"attempt": 2}, running | {"state": "failed"}, running, running | {"attempt": 3}
    )
    attempts: list[Any] = []
    ended = {
        row.pk: (
            Ended(row.pk, 3 if row is rows[4] else 1, now, "one", 7, "3/3", batch=BatchLink(rows[0].pk, 1, 5)),
            Entry("succeeded", 0, result=str(number)),
        )
        for number, row in enumerate(rows)
    }
    with transaction.atomic():
        settled = settle_succeeded(ended, now, attempts)
        record_attempts(attempts)
    assert settled == {rows[0].pk, rows[3].pk, rows[4].pk}
    states = dict(SchedulerExecution.objects.values_list("pk", "state"))
    assert [states[row.pk] for row in rows] == ["succeeded", "running", "failed", "succeeded", "succeeded"]
    row = SchedulerExecution.objects.get(pk=rows[3].pk)
    assert (row.pid, row.progress, row.error_class, row.wake_at, row.finished_at) == (7, "3/3", "", None, now)
    found = list(Attempt.objects.order_by("execution_id").values_list("execution_id", "number", "result"))
    assert found == [(rows[0].pk, 1, "0"), (rows[3].pk, 1, "3"), (rows[4].pk, 3, "4")]
    attempt = Attempt.objects.get(execution=rows[3])
    assert (attempt.batch_leader, attempt.batch_attempt, attempt.batch_size) == (rows[0].pk, 1, 5)
