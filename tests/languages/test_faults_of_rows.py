"""The faults of rows are in the language of the reader, and what is stored of them is English."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.utils import translation

from scheduling.core.targets import A_TARGET
from scheduling.execution.claim import claim_due
from scheduling.execution.planning import plan_anew
from scheduling.models import Calendar, Scheduler
from scheduling.models.exclusions import calendar
from scheduling.models.schedule_checks import ONE_TARGET
from scheduling.producer.changed_calendars import sweep_calendars
from tests.factories import CalendarFactory, SchedulerFactory
from tests.support import NOON

pytestmark = pytest.mark.django_db

COLUMNS: dict[str, Any] = {
    "schedule": "0 25 * * *",
    "timezone": "Europe/Madird",
    "queue": "Reports",
    "max_retries": 99,
    "params": {"a": 2**64},
}


def faults(row: Scheduler) -> dict[str, list[str]]:
    try:
        row.full_clean()
    except ValidationError as error:
        return error.message_dict
    return {}


def test_the_faults_of_a_form_are_german_for_a_german() -> None:
    row = SchedulerFactory()
    for name, value in COLUMNS.items():
        setattr(row, name, value)
    english = faults(row)
    with translation.override("de"):
        german = faults(row)
    assert set(COLUMNS) <= set(german)
    assert english.keys() == german.keys()
    assert german["schedule"] == ["Stunde: '25' liegt nicht im Bereich 0-23."]
    assert german["timezone"] == ["Zeitzone: 'Europe/Madird' ist keine IANA-Zeitzone; meinten Sie 'Europe/Madrid'?"]
    assert german["params"] == ["Das JSON enthält eine ganze Zahl mit mehr als 64 Bit."]
    assert [name for name in german if english[name] == german[name]] == []


def test_a_calendar_that_cannot_be_used_says_so_in_the_language_of_each_reader() -> None:
    pk = CalendarFactory(name="Kitchen").pk
    Calendar.objects.update(entries="nonsense")
    for _turn in range(2):
        assert calendar(pk).problem.startswith("The calendar “Kitchen” cannot be used: Line 1: “nonsense” is no entry.")
        with translation.override("de"):
            assert calendar(pk).problem.startswith("Der Kalender „Kitchen“ ist nicht nutzbar: Zeile 1: „nonsense“ ist")


@pytest.mark.parametrize("columns", [{"schedule": "0 25 * * *"}, {"timezone": "Nowhere"}])
def test_what_a_producer_stores_is_english(columns: dict[str, str]) -> None:
    """A producer runs in the language of the site, and a reader may have another one."""
    row = SchedulerFactory(schedule="0 * * * *", timezone="UTC")
    Scheduler.objects.update(next_run_at=NOON, **columns)
    with translation.override("de"):
        claim_due(NOON, embedded=True)
        row.refresh_from_db()
        assert row.plan_error.startswith(("Hour: '25' is outside 0-23.", "Zone: 'Nowhere' is not an IANA time zone"))
        Scheduler.objects.update(plan_error="")
        plan_anew([row.pk], NOON)
        row.refresh_from_db()
    assert row.plan_error.startswith(("Hour: '25' is outside 0-23.", "Zone: 'Nowhere' is not an IANA time zone"))


def test_what_a_producer_stores_of_a_calendar_is_english() -> None:
    row = CalendarFactory(name="Kitchen")
    Calendar.objects.update(entries="nonsense")
    with translation.override("de"):
        sweep_calendars(NOON)
    row.refresh_from_db()
    assert row.error.startswith("Line 1: “nonsense” is no entry.")


def test_the_sentence_about_targets_names_all_types() -> None:
    assert str(ONE_TARGET) == f"Choose exactly one target: {A_TARGET}."
