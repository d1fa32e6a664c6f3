"""A prepared query returns what the queryset returns from which it was made, for each present time and database."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, connections
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext

from scheduling.broker.database import DatabaseBroker
from scheduling.models import SchedulerExecution
from scheduling.models.prepared import Prepared, has_any_rows
from scheduling.processes import left_out
from tests.factories import SchedulerExecutionFactory
from tests.support import NOON, at_once

pytestmark = pytest.mark.django_db

COLUMNS = ("id", "wake_at", "params", "headers", "state", "published_at", "scheduled_at")


def test_rows_are_those_of_the_queryset() -> None:
    for number in range(5):
        SchedulerExecutionFactory(wake_at=NOON + timedelta(hours=number), params={"value": [number, "é", None]})
    prepared = Prepared(lambda now: SchedulerExecution.objects.filter(wake_at__lte=now).values_list(*COLUMNS))
    counts = []
    for hours in (-1, 0, 2, 9):
        now = NOON + timedelta(hours=hours, microseconds=1)
        rows = prepared.rows(now)
        assert sorted(rows) == sorted(SchedulerExecution.objects.filter(wake_at__lte=now).values_list(*COLUMNS))
        counts.append(len(rows))
    assert counts == [0, 1, 3, 5]


def test_an_instant_that_was_reckoned_from_the_present_time_moves_with_it() -> None:
    for number in range(6):
        SchedulerExecutionFactory(wake_at=NOON + timedelta(hours=number))

    def around(now: datetime) -> QuerySet[SchedulerExecution, tuple[Any, ...]]:
        span = {"wake_at__gt": now - timedelta(hours=1, microseconds=1), "wake_at__lte": now + timedelta(hours=1)}
        return SchedulerExecution.objects.filter(**span).exclude(target_name="2026-01-02 03:04:05").values_list("pk")

    prepared = Prepared(around)
    counts = []
    for hours in (-1, 0, 2, 9):
        rows = prepared.rows(NOON + timedelta(hours=hours))
        assert sorted(rows) == sorted(around(NOON + timedelta(hours=hours)))
        counts.append(len(rows))
    assert counts == [1, 2, 3, 0]


def test_the_query_is_built_once() -> None:
    built = []

    def build(now: Any) -> QuerySet[SchedulerExecution, tuple[Any, ...]]:
        built.append(now)
        return SchedulerExecution.objects.filter(wake_at__lte=now).values_list("id")

    prepared = Prepared(build)
    with CaptureQueriesContext(connection) as queries:
        for _number in range(3):
            prepared.rows(NOON)
    assert len(built) == 1
    assert len(queries) == 3


@pytest.mark.django_db(transaction=True)
def test_threads_share_a_prepared_query() -> None:
    SchedulerExecutionFactory(wake_at=NOON)
    prepared = Prepared(
        lambda now: SchedulerExecution.objects.filter(wake_at__lte=now).values_list("wake_at", "params")
    )

    def read() -> list[tuple[Any, ...]]:
        try:
            return prepared.rows(NOON)
        finally:
            connections.close_all()

    own = prepared.rows(NOON)
    assert at_once([read] * 4) == [own] * 4


def test_a_row_that_is_left_out_is_not_taken() -> None:
    first, second = (SchedulerExecutionFactory(wake_at=NOON) for _number in range(2))
    broker = DatabaseBroker()
    assert [found.message.execution_id for found in broker.take(("main",), 1, NOON)] == [first.pk]
    left_out.executions.add(first.pk, ValueError("refused"), NOON)
    try:
        assert [found.message.execution_id for found in DatabaseBroker().take(("main",), 1, NOON)] == [second.pk]
    finally:
        left_out.executions.clear()


def test_several_queries_are_asked_together() -> None:
    SchedulerExecutionFactory(wake_at=NOON, state="queued")
    due = Prepared(lambda now: SchedulerExecution.objects.filter(wake_at__lte=now).values_list("id")[:1])
    running = Prepared(lambda _now: SchedulerExecution.objects.filter(state="running").values_list("id")[:1])
    early, late = NOON - timedelta(seconds=1), NOON + timedelta(seconds=1)
    with CaptureQueriesContext(connection) as queries:
        assert not has_any_rows([(due, early), (running, late)])
        assert has_any_rows([(running, early), (due, late)])
        assert has_any_rows([(due, early), (due, late), (running, late)])
    assert len(queries) == 3
