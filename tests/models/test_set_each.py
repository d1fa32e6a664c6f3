"""Each of many rows gets values of its own, in few statements, on each database."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduling.models import Scheduler
from scheduling.models.set_each import MANY, set_each
from tests.factories import SchedulerFactory

pytestmark = [pytest.mark.django_db, pytest.mark.database]

NOON = datetime(2026, 3, 10, 12, 0, 0, 123456, tzinfo=UTC)


def stored(*names: str) -> list[tuple[object, ...]]:
    return list(Scheduler.objects.order_by("pk").values_list(*names))


def test_rows_with_values_of_their_own_and_rows_with_the_same_values() -> None:
    rows = SchedulerFactory.create_batch(MANY + 3, rare=True)
    untouched = SchedulerFactory(rare=True)
    values = {row.pk: (NOON, 7) for row in rows[:MANY]}
    own = [(NOON + timedelta(seconds=1), 8), (None, 9), (NOON - timedelta(days=1), 0)]
    values |= dict(zip([row.pk for row in rows[MANY:]], own, strict=True))
    before = stored("next_run_at", "runs_counted", "open_run")[-1]
    with CaptureQueriesContext(connection) as queries:
        set_each(Scheduler, ["next_run_at", "runs_counted"], values, open_run=5)
    assert len(queries) == 2
    assert stored("next_run_at", "runs_counted", "open_run") == [
        *[(NOON, 7, 5)] * MANY,
        *[(*one, 5) for one in own],
        before,
    ]
    assert untouched.pk not in values


@pytest.mark.long
def test_more_rows_than_one_statement_takes() -> None:
    rows = SchedulerFactory.create_batch(320, rare=True)
    set_each(Scheduler, ["runs_counted"], {row.pk: [row.pk] for row in rows})
    assert stored("runs_counted") == [(row.pk,) for row in rows]


def test_nothing_to_set_asks_nothing() -> None:
    with CaptureQueriesContext(connection) as queries:
        set_each(Scheduler, ["runs_counted"], {})
    assert len(queries) == 0
