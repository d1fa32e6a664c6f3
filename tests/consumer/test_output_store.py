"""The output of a run is inserted with few statements. No statement is larger than the largest row may be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.output_store import store_each, store_output
from scheduling.consumer.running import Running
from scheduling.models import Output, SchedulerExecution
from scheduling.models.output import CHUNK_LIMIT
from tests.factories import ManualExecutionFactory

LINE = b"x" * 99 + b"\n"


def a_run(execution: SchedulerExecution, limit: int) -> Running:
    """Return a run with an empty output buffer."""
    delivery: Any = SimpleNamespace(message=SimpleNamespace(execution_id=execution.pk, attempt=1))
    config: Any = SimpleNamespace()
    return Running(delivery, config, OutputBuffer(limit), clock.now(), "here")


@pytest.mark.django_db
@pytest.mark.parametrize("limit", [1_000_000, 20_000_000])
def test_small_rows_share_an_insert(limit: int) -> None:
    run = a_run(ManualExecutionFactory(), limit)
    for _ in range(2 * limit // 65_500):
        run.output.feed(LINE * 655, clock.now().timestamp())
    with CaptureQueriesContext(connection) as queries:
        store_output([run], clock.now())
    inserts = [query["sql"] for query in queries if query["sql"].startswith("INSERT")]
    stored = sum(map(len, Output.objects.values_list("text", flat=True)))
    assert stored > 0.9 * limit
    assert max(map(len, inserts)) < CHUNK_LIMIT + 20_000  # the statement has further words
    assert len(inserts) <= 2 * stored // CHUNK_LIMIT + 1


@pytest.mark.django_db
@pytest.mark.parametrize("now_is", [{"attempt": 2}, {"state": "retrying"}, {"state": "succeeded", "wake_at": None}])
def test_the_output_of_a_fenced_attempt_is_dropped(now_is: dict[str, Any]) -> None:
    execution, other = (ManualExecutionFactory(state="running", attempt=1) for _ in range(2))
    runs = [a_run(execution, 10_000), a_run(other, 10_000)]
    for run in runs:
        run.output.feed(b"in time\n", 0.0)
    store_each(runs, clock.now())
    SchedulerExecution.objects.filter(pk=execution.pk).update(**now_is)
    for run in runs:
        run.output.feed(b"late\n", 0.0)
        run.show_progress("1/2")
    store_each(runs, clock.now())
    stored = {
        pk: "".join(Output.objects.filter(execution=pk).values_list("text", flat=True))
        for pk in (execution.pk, other.pk)
    }
    assert "in time" in stored[execution.pk]
    assert "late" not in stored[execution.pk]
    assert "late" in stored[other.pk]
    assert set(SchedulerExecution.objects.values_list("pk", "progress")) == {(execution.pk, ""), (other.pk, "1/2")}
    assert not runs[0].unstored
