"""Events that wait for their time cost the sweeps and the dashboard nothing, however many there are."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.core.lifecycle import CONFIRMED_GRACE, State
from scheduling.models import SchedulerExecution
from scheduling.models.used_queues import in_used_queues
from scheduling.monitoring.findings import watched
from scheduling.producer.sweeps import publish_claimed, publish_retries
from tests.factories import ManualExecutionFactory
from tests.producer.recording_broker import RecordingBroker

pytestmark = pytest.mark.django_db

QUEUES = ("", "main", "mail.low", "standalone")


def waits(state: State, queue: str, seconds: float) -> int:
    """An execution that waits until so many seconds from now."""
    row = ManualExecutionFactory(state=state.value, queue=queue, wake_at=clock.now() + timedelta(seconds=seconds))
    return int(row.pk)


def used_indexes(captured: CaptureQueriesContext) -> list[str]:
    """The plan of each query for executions whose `wake_at` has passed."""
    found = []
    for query in captured.captured_queries:
        if "wake_at" in query["sql"] and query["sql"].startswith("SELECT"):
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN QUERY PLAN {query['sql']}")
                found.append(" ".join(str(row[-1]) for row in cursor.fetchall()))
    return found


@pytest.mark.parametrize(("state", "sweep"), [(State.CLAIMED, publish_claimed), (State.RETRYING, publish_retries)])
def test_late_rows_of_each_queue_are_published_and_others_wait(state: State, sweep: Any) -> None:
    late = {waits(state, queue, -2 * CONFIRMED_GRACE.total_seconds()) for queue in QUEUES}
    later = {waits(state, queue, 3600) for queue in QUEUES}
    broker = RecordingBroker()
    assert sweep(broker, clock.now()) == len(QUEUES)
    assert {message.execution_id for message in broker.published} == late
    assert set(SchedulerExecution.objects.in_state(state).values_list("pk", flat=True)) == later


@pytest.mark.skipif(connection.vendor != "sqlite", reason="the plan of a small table is another on each server")
def test_the_sweeps_and_the_dashboard_read_ranges_of_the_index_up_to_now() -> None:
    for state in (State.CLAIMED, State.RETRYING):
        waits(state, "main", 3600)
    with CaptureQueriesContext(connection) as captured:
        publish_claimed(RecordingBroker(), clock.now())
        publish_retries(RecordingBroker(), clock.now())
        assert not list(watched.claimed_long(clock.now()))
    plans = [plan for plan in used_indexes(captured) if "queue>?" not in plan and "(state=?)" not in plan]
    assert len(plans) == 3
    assert all("scheduling_exec_wake (state=? AND queue=? AND wake_at<?)" in plan for plan in plans), plans


def test_without_a_row_in_the_state_one_query_says_so(django_assert_num_queries: Any) -> None:
    with django_assert_num_queries(1):
        assert publish_claimed(RecordingBroker(), clock.now()) == 0
    assert in_used_queues(State.CLAIMED) is None
