"""Each rule of a schedule has a field in the form, a value in the HTTP API, in files and commands, words on the page of
the schedule, and a place in the docs."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from scheduling.admin.schedulers.admin import SchedulerAdmin
from scheduling.models import Scheduler
from scheduling.models.after import AFTER_COLUMNS
from scheduling.models.own_timing import TIMING_COLUMNS
from scheduling.models.run_bounds import RUN_BOUNDS
from scheduling.operations.schedule_entry import KNOWN
from scheduling.operations.schedule_values import ScheduleValues
from scheduling.operations.shapes import ScheduleShape
from tests.admin.conftest import logged_in
from tests.admin.pages import text_in
from tests.admin.scheduler_form import overview
from tests.factories import CalendarFactory, SchedulerFactory, UserFactory
from tests.management.cron.calls import cron
from tests.support import NOON

pytestmark = pytest.mark.django_db

DOCS = Path(__file__).parents[2] / "docs"
RULES = ("schedule", *TIMING_COLUMNS, *RUN_BOUNDS, "overlap", "calendar", "after", *AFTER_COLUMNS)
ALL = {"missed_runs": "all"}
LATE = {"spread_seconds": 1800}

WORDS: list[tuple[str, dict[str, Any], str]] = [
    ("schedule", {"schedule": "@every 90m from 2026-01-05T08:00Z"}, "Every 90 minutes, counted from 2026-01-05 08:00"),
    ("spread_seconds", LATE, "Spread over 30 min: this schedule starts"),
    ("spread_each", {**LATE, "spread_each": True}, "each run starts by another offset"),
    ("missed_runs", {"missed_runs": "none"}, "What no producer has started within a minute does not run."),
    ("missed_runs", ALL, "All missed runs are caught up"),
    ("missed_cap", {**ALL, "missed_cap": 7}, "the newest 7 of them"),
    ("missed_within_seconds", {"missed_within_seconds": 7200}, "if it is at most 2 h old"),
    ("active_from", {"active_from": NOON + timedelta(days=9_999)}, "It runs from 2053-07-25 12:00:00 UTC on."),
    ("active_until", {"active_until": NOON + timedelta(days=9_999)}, "It runs until 2053-07-25 12:00:00 UTC."),
    ("on_excluded", {"on_excluded": "skip"}, "Left out at the times of the calendar “Depot”."),
    ("on_excluded", {"on_excluded": "hold"}, "Held at the times of the calendar “Depot”, and run once when they end."),
    ("overlap", {"overlap": "skip"}, "Overlap leave the new run out"),
    ("overlap", {"overlap": "wait"}, "Overlap let the newest run wait"),
    ("overlap", {"overlap": "replace"}, "Overlap cancel the old run"),
    ("start_within_seconds", {"start_within_seconds": 900}, "Start deadline at most 15 min after it was due"),
    ("max_runs", {"max_runs": 3}, "Number of runs 0 of 3; then it is paused"),
    ("max_runs", {"max_runs": 3}, "It is paused after its next 3 runs."),
    ("pause_after_failures", {"pause_after_failures": 2}, "Pause after failures 2 failures in a row"),
    ("calendar", {}, "Calendar Depot"),
    ("after", {}, ": its last run of the same day. It waits at most 12 h, then: leave the run out."),
    ("after_span", {"after_span": "previous"}, "its last run since the run before of this schedule"),
    ("after_within_seconds", {"after_within_seconds": 5400}, "It waits at most 1 h 30 min"),
    ("after_late", {"after_late": "fail"}, "then: let it fail, without an attempt"),
]


def made(column: str, values: dict[str, Any]) -> Scheduler:
    if column in ("calendar", "on_excluded"):
        values = {**values, "calendar": CalendarFactory(name="Depot")}
    if column.startswith("after"):
        values = {**values, "after": SchedulerFactory(description="Load data")}
    row: Scheduler = SchedulerFactory(**{"schedule": "0 8 * * *", "timezone": "UTC", "params": {}, **values})
    return row


@pytest.mark.parametrize(("column", "values", "words"), WORDS)
def test_the_page_of_the_schedule_says_it_in_words(column: str, values: dict[str, Any], words: str) -> None:
    viewer: Client = logged_in(UserFactory(superuser=True))
    assert words in text_in(viewer.get(overview(made(column, values))))


def test_no_rule_has_no_words() -> None:
    assert {column for column, _values, _words in WORDS} == set(RULES)


@pytest.mark.parametrize("column", RULES)
def test_each_door_and_the_docs_have_it(column: str) -> None:
    fields = [name for _title, options in SchedulerAdmin.fieldsets for name in options["fields"]]  # type: ignore[union-attr]
    assert column in fields
    assert column in ScheduleValues.model_fields
    assert column in ScheduleShape.model_fields
    assert column in KNOWN  # of schedule files
    document = json.loads((DOCS / "openapi.json").read_text())["components"]["schemas"]
    for name in ("ScheduleValues", "ScheduleShape"):
        assert column in document[name]["properties"]
    assert f"`{column}`" in (DOCS / "schedules.md").read_text() or column == "schedule"


@pytest.mark.parametrize(("column", "values"), [(column, values) for column, values, _words in WORDS])
def test_the_command_shows_it(column: str, values: dict[str, Any]) -> None:
    UserFactory(username="boss", superuser=True)
    row = made(column, values)
    shown = cron("show", row.pk).out
    own = {"calendar": "Depot", "after": "schedule-", "on_excluded": "Depot"}
    value = own.get(column, values.get(column))
    texts = {"active_from": "2053-07-25 12:00", "active_until": "2053-07-25 12:00", "spread_each": "spread_each"}
    texts |= {"after_span": "its last run since", "after_within_seconds": "1 h 30 min"}
    assert texts.get(column, str(value)) in shown
