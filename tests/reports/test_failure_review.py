"""The tests check which failures the report "failure review" contains, and how it groups them into rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pydantic import ValidationError

from reports.failure_review import FailureReview, FailureReviewParams
from reports.models import Report
from scheduling.handlers import find
from tests.factories import GroupFactory, SchedulerFactory
from tests.reports.support import execution_of, failed, run_of
from tests.support import NOON

pytestmark = pytest.mark.django_db


def review(of_group: Group | None = None, **params: Any) -> list[dict[str, Any]]:
    """Return the rows of a review that is due at NOON, as dictionaries with the column names as keys."""
    controller = FailureReview()
    run = replace(run_of(), group_id=of_group.pk if of_group else None)
    rows = controller.table(FailureReviewParams(**params), run)
    return [dict(zip(controller.columns, row, strict=True)) for row in rows]


def test_the_columns_of_a_failure() -> None:
    row = SchedulerFactory(rare=True, description="Sync of tokens")
    execution = failed(NOON - timedelta(hours=1), "no route to 10.1.2.3\nmore", scheduler=row)
    assert review(group="each") == [
        {
            "date": date(2026, 3, 10),
            "type": "worker",
            "target": "sync",
            "scheduler_id": row.pk,
            "schedule": "Sync of tokens",
            "error_class": "ConnectionError",
            "error": "no route to 10.1.2.3",
            "attempts": 2,
            "retries": 1,
            "first_seen": NOON - timedelta(minutes=61),
            "last_seen": NOON - timedelta(hours=1),
            "count": 1,
            "state": "failed",
            "execution_id": execution.pk,
        }
    ]


@pytest.mark.parametrize(("name", "shown"), [("nightly", "nightly"), ("@worker:sync", ""), (None, "")])
def test_a_schedule_without_a_description_is_told_by_its_name(name: str | None, shown: str) -> None:
    failed(NOON - timedelta(hours=1), scheduler=SchedulerFactory(rare=True, description="", name=name))
    assert [line["schedule"] for line in review(group="each")] == [shown]


def test_failures_are_grouped_by_cause_most_frequent_first() -> None:
    rows = [SchedulerFactory(rare=True, description=name) for name in ("a", "b")]
    failed(NOON - timedelta(days=1), "disk full")
    for number, row in enumerate(rows):
        failed(
            NOON - timedelta(hours=3 - number), f"no route to 10.0.0.{number}", scheduler=row, target_name=f"t{number}"
        )
    first, second = review()
    assert (first["count"], first["attempts"], first["retries"]) == (2, 4, 2)
    assert (first["target"], first["schedule"], first["scheduler_id"]) == ("2 targets", "2 schedules", None)
    assert first["error"] == "no route to 10.0.0.1"
    assert (first["first_seen"], first["last_seen"]) == (NOON - timedelta(minutes=181), NOON - timedelta(hours=2))
    assert (second["error"], second["count"], second["target"]) == ("disk full", 1, "sync")


def test_only_the_window_before_the_due_instant_counts() -> None:
    inside = failed(NOON - timedelta(days=7), "first instant")
    failed(NOON - timedelta(days=7, seconds=1), "too old")
    failed(NOON, "the next review's")
    assert [row["execution_id"] for row in review(group="each")] == [inside.pk]
    assert {row["error"] for row in review(days=8, group="each")} == {"first instant", "too old"}


def test_only_failures_count_and_discarded_ones_are_optional() -> None:
    at = NOON - timedelta(hours=1)
    for state in ("succeeded", "cancelled", "retrying", "skipped"):
        execution_of(state, finished_at=at)
    failed(at)
    # The time of the failure counts, not the time of the discard. `long_ago` failed before the period of the review and
    # was discarded during the period. `inside` failed during the period and was discarded afterwards.
    long_ago = failed(NOON - timedelta(days=30), state="discarded")
    inside = failed(at, state="discarded")
    type(inside).objects.filter(pk=long_ago.pk).update(finished_at=at)
    type(inside).objects.filter(pk=inside.pk).update(finished_at=NOON + timedelta(days=1))
    assert [row["state"] for row in review(group="each")] == ["failed"]
    assert [row["state"] for row in review(group="each", include_discarded=True)] == ["failed", "discarded"]
    (row,) = review(include_discarded=True)
    assert (row["count"], row["state"]) == (2, "failed, discarded")


def test_a_message_that_never_ran_is_a_failure() -> None:
    execution_of(
        "failed",
        attempt=0,
        type="",
        target_name="",
        error_class="MessageInvalid",
        error_message="",
        finished_at=NOON - timedelta(hours=1),
    )
    (row,) = review()
    assert (row["error_class"], row["error"], row["attempts"], row["retries"]) == ("MessageInvalid", "", 0, 0)


def test_it_reads_in_chunks_without_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FailureReview, "executions_per_query", 2)
    row = SchedulerFactory(rare=True, description="a")
    made = [failed(NOON - timedelta(hours=1), scheduler=row).pk for _ in range(5)]
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert [line["execution_id"] for line in review(group="each")] == made[::-1]
    assert len(queries) == 1 + 3 * 3
    assert not any(" JOIN " in query["sql"] for query in queries)


def test_rows_are_not_collected_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FailureReview, "executions_per_query", 1)
    for _ in range(3):
        failed(NOON - timedelta(hours=1))
    rows: Iterator[Any] = FailureReview().table(FailureReviewParams(group="each"), run_of())
    with CaptureQueriesContext(connection) as queries:
        next(rows)
    assert len(queries) <= 3


@pytest.mark.parametrize("params", [{"days": 0}, {"days": 91}, {"group": "colour"}, {"dayz": 3}])
def test_params_out_of_bounds_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FailureReviewParams(**params)


def test_the_failure_review_has_a_row() -> None:
    assert find("report", "failure_review").fresh
    assert Report.objects.get(controller="failure_review").title == "Failure review"


def test_a_review_lists_the_failures_of_its_group_and_those_without_a_group() -> None:
    own, other = GroupFactory(), GroupFactory()
    for group, name in ((None, "open"), (own, "own"), (other, "secret")):
        failed(NOON - timedelta(hours=1), name, group=group, scheduler=SchedulerFactory(group=group, description=name))
    assert {row["error"] for row in review(own, group="each")} == {"open", "own"}
    assert {row["error"] for row in review(own)} == {"open", "own"}
    assert {row["error"] for row in review(other, group="each")} == {"open", "secret"}
    # A user who may see no group sees the file of a review without one.
    assert {row["error"] for row in review(group="each")} == {"open"}


def test_a_review_does_not_name_a_hidden_schedule() -> None:
    hidden = SchedulerFactory(group=GroupFactory(), description="secret plan")
    failed(NOON - timedelta(hours=1), "it ran before the schedule had a group", scheduler=hidden)
    assert [row["schedule"] for row in review(group="each")] == [""]


def test_a_review_in_a_terminal_lists_all_failures() -> None:
    failed(NOON - timedelta(hours=1), "secret", group=GroupFactory())
    controller = FailureReview()
    rows = controller.table(FailureReviewParams(), replace(run_of(), execution_id=0))
    assert len(list(rows)) == 1
