"""The next runs of a schedule are those that take place: within its number of runs, and what starts of what is late."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from scheduling.core import skip_reasons
from scheduling.execution.claim import claim_due
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.operations.catch_up import catch_up_words, caught_up
from scheduling.operations.next_runs import next_expected, next_runs, next_runs_shape
from tests.factories import SchedulerFactory
from tests.support import NOON, Clock

pytestmark = pytest.mark.django_db

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.fixture
def at(at: Clock) -> Clock:
    """Set the clock to an instant. At first, it is a minute before noon."""
    at(NOON - MINUTE)
    return at


def hourly(**columns: Any) -> Scheduler:
    row: Scheduler = SchedulerFactory(**{"schedule": "0 * * * *", "timezone": "UTC", "params": {}, **columns})
    return row


def claim(now: datetime) -> list[datetime]:
    """Let a producer work. Returns the nominal instants of the runs that it makes."""
    return [run.scheduled_at for run in claim_due(now, embedded=True).claimed]


@pytest.mark.parametrize("columns", [{}, {"active_from": NOON - HOUR}])
def test_no_more_runs_are_told_than_are_left(at: Clock, columns: dict[str, Any]) -> None:
    row = hourly(max_runs=3, **columns)
    assert next_runs(row) == [NOON, NOON + HOUR, NOON + 2 * HOUR]
    assert claim(at(NOON)) == [NOON]
    row.refresh_from_db()
    assert next_runs(row) == [NOON + HOUR, NOON + 2 * HOUR]
    assert len(next_runs_shape(row).runs) == 2
    # While no producer runs, two fall due. One of them will run, so one run is left after it.
    now = at(NOON + 2 * HOUR + MINUTE)
    assert [run for run in next_runs(row) if run > now] == [NOON + 3 * HOUR]
    assert claim(now) == [NOON + 2 * HOUR]
    assert claim(at(NOON + 3 * HOUR)) == [NOON + 3 * HOUR]
    assert claim(at(NOON + 4 * HOUR)) == []
    row.refresh_from_db()
    assert not row.status
    assert len(next_runs(row)) == 3  # so many it would have if it were resumed


def test_of_what_is_late_only_what_starts_is_told(at: Clock) -> None:
    row = hourly(active_from=NOON)
    now = at(NOON + 5 * HOUR + MINUTE)
    told = next_expected(row, 3, now)
    assert [one.first for one in told] == [NOON + 5 * HOUR, NOON + 6 * HOUR, NOON + 7 * HOUR]
    assert claim(now) == [NOON + 5 * HOUR]
    none = hourly(missed_runs="none", active_from=NOON)
    Scheduler.objects.filter(pk=none.pk).update(next_run_at=NOON)
    none.refresh_from_db()
    assert [one.first for one in next_expected(none, 1, at(now + MINUTE))] == [NOON + 6 * HOUR]


def test_what_is_caught_up_obeys_the_number_of_runs(at: Clock) -> None:
    row = hourly(missed_runs="all", max_runs=2)
    now = at(NOON + 4 * HOUR + MINUTE)
    assert caught_up([row], now) == (2, 3)
    assert [one.first for one in next_expected(row, now=now)] == [NOON, NOON + HOUR]
    assert catch_up_words(row, now)[0].startswith("As soon as a producer works, 2 runs start, those of 2026-03-10 12:")
    assert claim(now) == [NOON, NOON + HOUR]
    skipped = SchedulerExecution.objects.filter(state="skipped")
    assert set(skipped.values_list("reason", "missed")) == {(skip_reasons.SWITCHED_OFF, 1)}
    assert skipped.count() == 3


def test_what_is_caught_up_obeys_the_start_deadline(at: Clock) -> None:
    row = hourly(missed_runs="all", start_within_seconds=7200)
    now = at(NOON + 4 * HOUR + MINUTE)
    assert caught_up([row], now) == (2, 3)
    assert claim(now) == [NOON + 3 * HOUR, NOON + 4 * HOUR]
    assert SchedulerExecution.objects.filter(state="skipped").count() == 3
