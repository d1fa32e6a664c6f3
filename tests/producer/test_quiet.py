"""One statement finds out whether the sweeps that seldom have anything to do have something to do now."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduling.broker.database import DatabaseBroker
from scheduling.models import Calendar, Replay, Scheduler
from scheduling.models.calendar import CalendarState
from scheduling.producer import quiet
from scheduling.producer.quiet import is_quiet
from scheduling.producer.sweeps import sweep
from tests.factories import (
    BackfillFactory,
    BreakerFactory,
    CalendarFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    StartDeadlineFactory,
    UncountedSkipFactory,
)
from tests.support import NOON

pytestmark = [pytest.mark.django_db, pytest.mark.database]

SECOND = timedelta(seconds=1)


def _stale() -> None:
    Scheduler.objects.filter(pk=SchedulerFactory(rare=True).pk).update(schedule="7 7 * * *")  # as plain SQL may do


def _changed() -> None:
    Calendar.objects.filter(pk=CalendarFactory().pk).update(state=CalendarState.CHANGED)


WORK: dict[str, Callable[[], object]] = {
    "a stale schedule": _stale,
    "a changed calendar": _changed,
    "a lost lease": lambda: SchedulerExecutionFactory(state="running", attempt=1, wake_at=NOON - SECOND),
    "an open breaker": lambda: BreakerFactory(state="open"),
    "a breaker that was closed just now": lambda: BreakerFactory(state="closed", since=NOON - SECOND),
    "a start deadline": lambda: StartDeadlineFactory(start_by=NOON),
    "a replay": lambda: Replay.objects.create(
        key=uuid.uuid4(), requested_by="anna", created_at=NOON, selection="all", total=1, state=Replay.State.WAITING
    ),
    "a backfill": lambda: BackfillFactory(state="running", next_at=NOON),
    "a skip that is not counted": lambda: UncountedSkipFactory(),
}


@pytest.mark.parametrize("name", WORK)
def test_each_kind_of_work_is_seen(name: str) -> None:
    SchedulerExecutionFactory(state="queued", wake_at=NOON + SECOND)
    assert is_quiet(NOON, 0.0)
    WORK[name]()
    assert not is_quiet(NOON, 0.0)


def test_a_lease_counts_only_after_its_time() -> None:
    SchedulerExecutionFactory(state="running", attempt=1, wake_at=NOON - SECOND)
    assert not is_quiet(NOON, 0.5)
    assert is_quiet(NOON, 2.0)
    assert is_quiet(NOON, None)  # the owners could not renew their leases


def test_it_is_one_statement() -> None:
    with CaptureQueriesContext(connection) as queries:
        is_quiet(NOON, 0.0)
    assert len(queries) == 1


def test_if_the_question_is_refused_each_sweep_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_questions: object) -> bool:
        raise ValueError("a text cannot be read")

    monkeypatch.setattr(quiet, "has_any_rows", refuse)
    _stale()
    assert sweep(DatabaseBroker(), NOON).planned == 1


@pytest.mark.skipif(connection.vendor != "sqlite", reason="the other databases know how often a value occurs")
def test_no_table_is_read_where_all_rows_have_the_same_value() -> None:
    SchedulerFactory.create_batch(200, rare=True)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
        with CaptureQueriesContext(connection) as queries:
            assert is_quiet(NOON, 0.0)
        cursor.execute(f"EXPLAIN QUERY PLAN {queries[0]['sql']}")
        steps = [step for *_place, step in cursor.fetchall()]
        cursor.execute("DROP TABLE sqlite_stat1")
    assert [step for step in steps if step.startswith("SCAN scheduling_scheduler")] == []
    assert any("scheduling_sched_plan" in step for step in steps)
