"""Queries that each evaluation makes find what a new queryset would find, although rows are remembered."""

from __future__ import annotations

from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from django.db import connection, connections
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext

from scheduling.alerts import repeated
from scheduling.alerts.repeated import KeyedQuery, RepeatedQuery, as_they_are
from scheduling.alerts.runs import NAMED, RECENT, newest_keys, open_runs, run_of, runs_by_key
from scheduling.models import SchedulerExecution
from tests.factories import SchedulerExecutionFactory, SchedulerFactory
from tests.hostile.fuzz import choose_seed
from tests.support import NOON

pytestmark = pytest.mark.django_db

COLUMNS = ("pk", "state", "attempt", "scheduled_at", "wake_at", "group_id", "reason")


def _due(now: datetime) -> QuerySet[SchedulerExecution]:
    return SchedulerExecution.objects.filter(wake_at__lte=now).order_by("pk")


def _newest_running(now: datetime) -> QuerySet[SchedulerExecution]:
    return SchedulerExecution.objects.filter(state="running", wake_at__lte=now).order_by("-pk")


def test_changes_of_rows_are_seen() -> None:
    seed = choose_seed()
    random = Random(seed)
    keys = [SchedulerExecutionFactory(wake_at=NOON + timedelta(hours=number)).pk for number in range(12)]
    due, keyed = RepeatedQuery(_due, COLUMNS, 8, as_they_are), KeyedQuery(_all, COLUMNS, as_they_are)
    both = RepeatedQuery(_due, COLUMNS, 3, as_they_are, _newest_running)
    for _turn in range(40):
        now = NOON + timedelta(hours=random.randint(-1, 13))
        assert due.rows(now) == list(_due(now).values_list(*COLUMNS)[:8]), seed
        parts = [list(build(now).values_list(*COLUMNS)[:3]) for build in (_due, _newest_running)]
        assert sorted(both.rows(now)) == sorted([*parts[0], *parts[1]]), seed
        some = random.sample([*keys, max(keys) + 5], random.randint(0, 9))
        wanted = list(_all().filter(pk__in=some).values_list(*COLUMNS))
        assert sorted(keyed.rows(some)) == sorted(wanted), seed
        chosen = SchedulerExecution.objects.filter(pk=random.choice(keys))
        change: dict[str, Any] = random.choice(
            [
                {"wake_at": NOON + timedelta(seconds=random.randint(-99_999, 99_999))},
                {"state": random.choice(["queued", "running"]), "attempt": random.randint(0, 3)},
                {"reason": random.choice(["", "é", "it waits"])},
            ]
        )
        chosen.update(**change)
        if random.random() < 0.1:
            keys.remove(victim := random.choice(keys))
            SchedulerExecution.objects.filter(pk=victim).delete()


def _all() -> QuerySet[SchedulerExecution]:
    return SchedulerExecution.objects.order_by()


def test_a_row_that_comes_again_is_not_made_again() -> None:
    SchedulerExecutionFactory.create_batch(3, wake_at=NOON)
    made: list[Any] = []

    def make(values: tuple[Any, ...]) -> int:
        made.append(values)
        return int(values[0])

    due, keyed = RepeatedQuery(_due, COLUMNS, 8, make), KeyedQuery(_all, COLUMNS, make)
    first = due.rows(NOON)
    assert (due.rows(NOON), len(made)) == (first, 3)
    assert sorted(keyed.rows(first)) == first
    assert (sorted(keyed.rows(first)), len(made)) == (first, 6)
    SchedulerExecution.objects.filter(pk=first[1]).update(attempt=2)
    assert (due.rows(NOON), len(made)) == (first, 7)


def test_the_statement_is_built_once() -> None:
    built: list[datetime] = []

    def build(now: datetime) -> QuerySet[SchedulerExecution]:
        built.append(now)
        return _due(now)

    due = RepeatedQuery(build, COLUMNS, 8, as_they_are)
    with CaptureQueriesContext(connection) as queries:
        for hours in range(4):
            due.rows(NOON + timedelta(hours=hours))
    read = [query["sql"] for query in queries if query["sql"].startswith("SELECT")]
    assert (len(built), len(read)) == (1, 4)


def test_more_rows_than_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated, "MOST_REMEMBERED", 2)
    keys = sorted(row.pk for row in SchedulerExecutionFactory.create_batch(4, wake_at=NOON))
    due, keyed = RepeatedQuery(_due, ("pk",), 8, as_they_are), KeyedQuery(_all, ("pk",), as_they_are)
    for _turn in range(2):
        assert [pk for (pk,) in due.rows(NOON)] == keys
        assert sorted(pk for (pk,) in keyed.rows(keys)) == keys


@pytest.mark.parametrize("number", [1, 2, 499, 500, 501, 1_003])
def test_any_number_of_keys(number: int) -> None:
    there = SchedulerExecutionFactory.create_batch(3)
    keys = [*(row.pk for row in there), *range(10**9, 10**9 + number)]
    assert set(runs_by_key(keys, NAMED)) == {row.pk for row in there}
    assert runs_by_key([], NAMED) == {}


UNREADABLE = {"sqlite": "2025-13-99 00:00:00", "postgresql": "infinity", "mysql": "0000-00-00 00:00:00"}
"""Instants that plain SQL can write, and Python cannot read."""


def test_an_instant_that_plain_sql_has_made_unreadable_counts_as_unknown() -> None:
    good, bad = (SchedulerExecutionFactory(state="running", wake_at=NOON) for _number in range(2))
    assert {run.pk: run.scheduled_at for run in open_runs()}[bad.pk] is not None
    change = f"UPDATE scheduling_schedulerexecution SET scheduled_at = '{UNREADABLE[connection.vendor]}' WHERE id = %s"
    with connection.cursor() as cursor:
        if connection.vendor == "mysql":
            cursor.execute("SET @before = @@sql_mode, sql_mode = ''")
        cursor.execute(change, [bad.pk])
        if connection.vendor == "mysql":
            cursor.execute("SET sql_mode = @before")
    with CaptureQueriesContext(connection) as queries:
        found = {run.pk: run.scheduled_at for run in open_runs()}
    read = [query["sql"] for query in queries if "SELECT" in query["sql"]]
    assert (found[good.pk] is not None, found[bad.pk], len(read)) == (True, None, 1)
    assert runs_by_key([good.pk, bad.pk], RECENT)[bad.pk].scheduled_at is None


@pytest.mark.skipif(connection.vendor != "sqlite", reason="the other databases refuse such values")
def test_a_row_that_plain_sql_has_made_unreadable_is_left_out() -> None:
    good, bad = (SchedulerExecutionFactory(state="running", wake_at=NOON) for _number in range(2))
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE scheduling_schedulerexecution SET target_name = CAST(x'ff' AS TEXT) WHERE id = %s", [bad.pk]
        )
    due = RepeatedQuery(lambda _now: _all().order_by("pk"), RECENT, 8, lambda values: run_of(RECENT, values))
    found, unreadable = due.rows_and_bad()
    assert [run.pk for run in found if run is not None] == [good.pk]
    assert list(unreadable) == [bad.pk]
    assert set(runs_by_key([good.pk, bad.pk], RECENT)) == {good.pk}
    assert [run.pk for run in open_runs()] == [good.pk]


def test_keys_that_are_no_numbers_have_no_rows() -> None:
    """SQLite can store any value in a column of keys."""
    row = SchedulerExecutionFactory()
    keys: list[Any] = ["x", None, float("inf"), 1.5, True, row.pk]
    assert set(runs_by_key(keys, NAMED)) == {row.pk}


@pytest.mark.parametrize("zone", ["UTC", "Europe/Madrid", "Asia/Kathmandu"])
def test_instants_are_the_same_in_each_zone_of_the_connection(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project sets the zone by `TIME_ZONE` of the database."""
    own = connections["default"]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL TIME ZONE '{zone}'")
    else:
        monkeypatch.setitem(own.settings_dict, "TIME_ZONE", zone)
        for name in ("timezone", "timezone_name"):
            own.__dict__.pop(name, None)
    try:
        instants = [NOON + timedelta(days=30 * month, microseconds=120 * month) for month in range(12)]
        rows = [SchedulerExecutionFactory(wake_at=instant) for instant in instants]
        assert own.vendor == "postgresql" or own.timezone_name == zone
        found = KeyedQuery(_all, ("pk", "wake_at"), as_they_are).rows([row.pk for row in rows])
        assert sorted(found) == [(row.pk, instant) for row, instant in zip(rows, instants, strict=True)]
    finally:
        for name in ("timezone", "timezone_name"):
            own.__dict__.pop(name, None)


def test_the_newest_run_of_each_schedule() -> None:
    with_runs, without = SchedulerFactory.create_batch(2), SchedulerFactory()
    expected = {}
    for schedule in with_runs:
        SchedulerExecutionFactory(scheduler=schedule)
        expected[schedule.pk] = SchedulerExecutionFactory(scheduler=schedule).pk
    assert newest_keys([*expected, without.pk]) == expected
    newer = SchedulerExecutionFactory(scheduler=with_runs[0]).pk
    assert newest_keys([*expected, without.pk]) == {**expected, with_runs[0].pk: newer}
