"""Attempts that are put off together: each says why it waits, and one that has started meanwhile is left alone."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.core.lifecycle import State
from scheduling.execution.put_off import Wait, put_off
from scheduling.models import SchedulerExecution
from tests.factories import SchedulerExecutionFactory

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("embedded", [True, False])
def test_each_row_says_its_own_reason(embedded: bool) -> None:
    now = clock.now()
    queued, claimed = SchedulerExecutionFactory(state="queued"), SchedulerExecutionFactory(state="claimed")
    retrying = SchedulerExecutionFactory(retrying=True, attempt=1)
    running = SchedulerExecutionFactory(running=True)
    later = SchedulerExecutionFactory(state="queued", attempt=2)  # another process has made the attempt meanwhile
    rows = [queued, claimed, retrying, running, later]
    until = now + timedelta(minutes=5)
    before = dict(SchedulerExecution.objects.values_list("pk", "reason"))
    attempts = [0, 0, 1, running.attempt, 1]
    waits = [
        Wait(row.pk, attempt, f"It waits for 50 % of {row.pk}.", until, now)
        for row, attempt in zip(rows, attempts, strict=True)
    ]
    assert put_off(waits, now, embedded=embedded) == {queued.pk, claimed.pk, retrying.pk}
    to = State.QUEUED if embedded else State.CLAIMED
    for row in (queued, claimed, retrying):
        row.refresh_from_db()
        assert (row.state, row.wake_at, row.deferred_at) == (to.value, until, now)
        assert row.reason == f"It waits for 50 % of {row.pk}."
        assert row.published_at is not None
    for row in (running, later):
        row.refresh_from_db()
        assert (row.state in {"running", "queued"}, row.reason) == (True, before[row.pk])


def test_many_rows_cost_two_statements() -> None:
    now = clock.now()
    rows = [SchedulerExecutionFactory(state="queued") for _ in range(20)]
    waits = [Wait(row.pk, 0, f"It waits behind {row.pk}.", now + timedelta(hours=1), now) for row in rows]
    with CaptureQueriesContext(connection) as captured:
        assert len(put_off(waits, now, embedded=True)) == 20
    assert len(captured) == 2
