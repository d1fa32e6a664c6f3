"""The output of a run is inserted with few statements. No statement is larger than the largest row may be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.output_store import store_output
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
