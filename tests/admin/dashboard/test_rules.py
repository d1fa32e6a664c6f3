"""Tests of the dashboard's calculations: SVG pictures, percentiles, consecutive failures, primary keys by time."""

from __future__ import annotations

import random
from datetime import timedelta
from xml.etree import ElementTree

import pytest
from django.db import connection

from scheduling.admin.stats.runs import percentile, success_rate
from scheduling.admin.ui import svg
from scheduling.models import SchedulerExecution, first_keys
from scheduling.models.counts import Count, count, counts
from scheduling.models.last_runs import Ran, failures_in_a_row, last_runs
from scheduling.models.visibility import EVERYTHING
from tests.factories import ManualExecutionFactory, SchedulerExecutionFactory, SchedulerFactory
from tests.support import NOON


def ran(state: str, seconds: float | None = None) -> Ran:
    end = NOON + timedelta(seconds=seconds) if seconds is not None else None
    return Ran(1, 1, state, NOON, NOON if end else None, end, 0)


@pytest.mark.parametrize(
    ("values", "share", "found"),
    [([], 0.95, None), ([7], 0.5, 7), ([3, 1, 2], 0.5, 2), (range(1, 101), 0.95, 95), (range(1, 21), 0.95, 19)],
)
def test_a_percentile_is_a_value_that_occurred(values: list[float], share: float, found: float | None) -> None:
    assert percentile(values, share) == found


def test_success_rate_counts_only_successes_and_failures() -> None:
    states = ["succeeded", "failed", "discarded", "succeeded", "cancelled", "skipped", "running"]
    assert success_rate([ran(state) for state in states]) == 0.5
    assert success_rate([ran("running")]) is None


@pytest.mark.parametrize(("states", "row"), [("", 0), ("sf", 1), ("fsff", 2), ("ffkf", 3), ("fffs", 0), ("dff", 3)])
def test_failures_in_a_row(states: str, row: int) -> None:
    names = {"s": "succeeded", "f": "failed", "k": "skipped", "d": "discarded"}
    assert failures_in_a_row([ran(names[state]) for state in states]) == row


def test_a_picture_is_well_formed_and_escapes_text() -> None:
    evil = "<script>\"'&"
    bar = svg.link(f"/?a={evil}", evil, svg.rect(1, 2.5, 3, 4, "x", evil))
    text = svg.picture(10, 20, evil, [bar, svg.text(1, 1, evil), svg.meter(2.0, evil)], linked=True)
    root = ElementTree.fromstring(text)  # noqa: S314 - our own output
    assert root.get("role") == "group"
    assert root.get("aria-label") == evil
    assert "<script" not in text
    assert "style=" not in text
    assert ElementTree.fromstring(svg.picture(1, 1, "x", [])).get("role") == "img"  # noqa: S314


def test_bars_fill_the_height_and_short_bars_stay_visible() -> None:
    assert svg.bars([10, 5, 0], 20) == [20, 10, 2]
    assert svg.bars([0, 0], 20) == [2, 2]
    assert svg.bars([], 20) == []


@pytest.mark.django_db
@pytest.mark.parametrize("kept", [1.0, 0.3, 0.01])
def test_the_first_key_of_an_hour_is_found_after_retention(kept: float) -> None:
    row, chance = SchedulerFactory(), random.Random(5)
    rows = ManualExecutionFactory.bulk(2_000, scheduler=row)
    for number, execution in enumerate(rows):
        execution.executed_at = NOON + timedelta(minutes=number)
    SchedulerExecution.objects.bulk_update(rows, ["executed_at"], batch_size=200)
    SchedulerExecution.objects.filter(pk__in=[execution.pk for execution in rows if chance.random() > kept]).delete()
    left = list(SchedulerExecution.objects.order_by("pk").values_list("pk", "executed_at"))
    instants = [NOON + timedelta(minutes=minutes) for minutes in range(-60, 2_100, 60)]
    for instant, key in zip(instants, first_keys.first_keys(instants, keys_per_query=40), strict=True):
        assert [pk for pk, at in left if pk >= key] == [pk for pk, at in left if at >= instant]


@pytest.mark.django_db
def test_first_keys_are_zero_without_rows() -> None:
    assert first_keys.first_keys([NOON, NOON + timedelta(hours=1)]) == [0, 0]


@pytest.mark.django_db
def test_last_runs_returns_the_newest_runs_in_order_of_their_keys(django_assert_num_queries: object) -> None:
    busy, idle, new = SchedulerFactory(), SchedulerFactory(), SchedulerFactory()
    rows = [SchedulerExecutionFactory(scheduler=busy, succeeded=True).pk for _ in range(7)]
    one = SchedulerExecutionFactory(scheduler=idle, succeeded=True).pk
    with django_assert_num_queries(2, connection=connection):  # type: ignore[operator]
        found = last_runs([busy.pk, idle.pk, new.pk], EVERYTHING, 5)
    assert {pk: [run.pk for run in runs] for pk, runs in found.items()} == {
        busy.pk: rows[-5:], idle.pk: [one], new.pk: [],
    }  # fmt: skip


@pytest.mark.django_db
def test_a_count_stops_at_its_cap() -> None:
    ManualExecutionFactory.bulk(5, scheduler=SchedulerFactory())
    assert count(SchedulerExecution.objects.all(), cap=3) == Count(3, capped=True)
    assert str(Count(10_000, capped=True)) == "10,000+"
    assert str(count(SchedulerExecution.objects.all(), cap=5)) == "5"


@pytest.mark.django_db
def test_several_queries_are_counted_with_one_statement(django_assert_num_queries: object) -> None:
    for _number in range(4):
        SchedulerExecutionFactory(failed=True, target_name="50 % of 'it'")
    SchedulerExecutionFactory(succeeded=True)
    rows = SchedulerExecution.objects.order_by("-pk")
    wanted = {
        "failed": [rows.filter(state="failed", target_name="50 % of 'it'")],
        "none": [rows.none()],
        "all": [rows.filter(state="failed"), rows.filter(state="succeeded")],
        "late": [rows.filter(scheduled_at__gt=NOON + timedelta(days=90_000))],
    }
    with django_assert_num_queries(1, connection=connection):  # type: ignore[operator]
        found = counts(wanted, cap=4)
    assert found == {"failed": Count(4), "none": Count(0), "all": Count(4, capped=True), "late": Count(0)}
    assert counts({}) == {}
