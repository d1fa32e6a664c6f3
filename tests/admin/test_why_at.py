""" "Did it run at …?" on a schedule's page answers every instant in a sentence."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.execution.claim import claim_due
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.operations.typed_instants import parsed
from tests.admin.conftest import logged_in
from tests.admin.scheduler_form import overview
from tests.factories import ManualExecutionFactory, SchedulerExecutionFactory, SchedulerFactory, UserFactory, due
from tests.support import NOON

pytestmark = pytest.mark.django_db

BERLIN = {"schedule": "0 * * * *", "timezone": "Europe/Berlin"}


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[datetime], datetime]:
    """Set the clock to an instant. The clock begins at noon, which is 13:00 in Berlin."""

    def set_to(instant: datetime) -> datetime:
        monkeypatch.setattr(clock, "now", lambda: instant)
        return instant

    set_to(NOON)
    return set_to


@pytest.fixture
def row(at: Callable[[datetime], datetime]) -> Scheduler:
    """An hourly schedule in Berlin. It was created three days ago."""
    at(NOON - timedelta(days=3))
    made: Scheduler = SchedulerFactory(**BERLIN)
    at(NOON)
    return due(made, NOON + timedelta(hours=1))


def why(client: Client, row: Scheduler, typed: str) -> dict[str, Any]:
    """Return the only answer."""
    address = reverse("admin:scheduling_scheduler_why", args=[row.pk])
    [answer] = client.get(address, {"at": typed}).context["why_at"]["answers"]
    found: dict[str, Any] = answer
    return found


def execution(row: Scheduler, hours: int, **columns: Any) -> SchedulerExecution:
    instant = NOON - timedelta(hours=hours)
    key = f"cron-{instant.year}-{instant.month}-{instant.day}-{instant.hour}-{instant.minute}"
    made: SchedulerExecution = SchedulerExecutionFactory(
        scheduler=row, scheduled_at=instant, executed_at=instant, execution_key=key, **columns
    )
    return made


@pytest.mark.parametrize(
    ("trait", "text"),
    [
        ("succeeded", "It ran and succeeded in 10 s."),
        ("failed", "It ran and failed: ValueError."),
        ("discarded", "It ran and failed, and the failure was discarded."),
        ("cancelled", "It was cancelled. Cancelled by another user."),
        ("running", "It is running now."),
        ("retrying", "Attempt 1 failed: ConnectionError. The next attempt is due in 30 s."),
        ("skipped", "It did not run. Missed 3 occurrences: no producer was running."),
    ],
)
def test_what_is_on_record_is_linked(viewer: Client, row: Scheduler, trait: str, text: str) -> None:
    made = execution(row, 2, **{trait: True})
    answer = why(viewer, row, "2026-03-10 11:00")
    assert (answer["at"], answer["text"]) == ("2026-03-10 11:00 CET", text)
    assert answer["address"] == reverse("admin:scheduling_schedulerexecution_change", args=[made.pk])


def test_an_instant_that_a_pause_left_out_leads_to_its_row(viewer: Client, row: Scheduler, at: Any) -> None:
    row.status, row.paused_by, row.pause_reason = False, "anna", "storage full"
    row.save()
    at(NOON + timedelta(hours=5, minutes=30))
    ManualExecutionFactory.create_batch(3, scheduler=row)
    paused = why(viewer, row, "16:00")
    assert paused["text"] == "It did not run. It is paused since 2026-03-10 13:00 CET by anna: storage full."
    assert why(viewer, row, "2026-03-10 19:00")["text"].startswith("It is due then, but will not run unless")
    row.status = True
    row.save()
    left = SchedulerExecution.objects.get(state="skipped")
    answer = why(viewer, row, "16:00")
    assert answer["address"] == reverse("admin:scheduling_schedulerexecution_change", args=[left.pk])
    assert "storage full. 5 occurrences did not run." in answer["text"]
    assert why(viewer, row, "16:01")["text"] == "It was not due then."


def test_an_instant_that_an_outage_left_out_leads_to_its_row(viewer: Client, row: Scheduler, at: Any) -> None:
    at(NOON + timedelta(hours=5, minutes=30))
    assert why(viewer, row, "15:00")["text"].startswith("It fell due, and no producer has claimed it yet.")
    claim_due(clock.now(), embedded=True)
    assert "no producer was running" in why(viewer, row, "15:00")["text"]
    waits = "It has not started: it waits in the queue “main” for a free consumer."
    assert why(viewer, row, "18:00")["text"] == waits


def test_an_instant_at_which_it_is_not_due_has_its_neighbours(viewer: Client, row: Scheduler) -> None:
    made = execution(row, 2, succeeded=True)
    answer = why(viewer, row, "2026-03-10 11:30")
    assert answer["text"] == "It was not due then."
    (before, said, _chip, address), after = answer["near"]
    assert (before, said) == ("Before:", "2026-03-10 11:00 CET")
    assert address == reverse("admin:scheduling_schedulerexecution_change", args=[made.pk])
    assert after[:2] == ("After:", "2026-03-10 12:00 CET")


def test_other_times_a_later_creation_the_future_and_deleted_history(viewer: Client, row: Scheduler) -> None:
    assert why(viewer, row, "2026-03-11 03:00")["text"] == "It is due then, in 14 h."
    assert why(viewer, row, "2026-03-11 03:01")["text"] == "It is not due then."
    assert why(viewer, row, "2026-03-09 03:00")["text"].startswith("It was due, but nothing is on record.")
    created = "It did not run: the schedule was created later, at 2026-03-07 13:00 CET."
    assert why(viewer, row, "2026-03-01 03:00")["text"] == created
    Scheduler.objects.filter(pk=row.pk).update(created_at=NOON - timedelta(days=1, hours=9, minutes=59, seconds=48))
    created = "It did not run: the schedule was created later, at 2026-03-09 03:00:12 CET."  # in the same minute
    assert why(viewer, row, "2026-03-09 03:00")["text"] == created
    row.schedule = "30 * * * *"
    row.save()
    text = why(viewer, row, "2026-03-10 11:30")["text"]
    assert text.startswith("It was not planned then: it has its present times only since 2026-03-10 13:00 CET.")


def test_a_date_is_found_to_the_minute(viewer: Client, at: Any) -> None:
    at(NOON - timedelta(days=1))
    once = SchedulerFactory(schedule="", date_time=NOON + timedelta(seconds=20))
    assert why(viewer, once, "2026-03-10 12:00")["text"].startswith("It is due then")
    assert why(viewer, once, "2026-03-10 11:00")["near"][0][:2] == ("After:", "2026-03-10 12:00:20 UTC")
    claim_due(at(NOON + timedelta(minutes=1)), embedded=True)
    assert why(viewer, once, "12:00")["address"]


def test_an_interval_of_seconds_is_asked_by_the_second(viewer: Client, at: Any) -> None:
    at(NOON - timedelta(days=1))
    with override_settings(CRON_SECONDS=True):
        row = due(SchedulerFactory(schedule="@every 10s", timezone="UTC"), NOON + timedelta(seconds=20))
        claim_due(at(NOON + timedelta(seconds=25)), embedded=True)
        page = viewer.get(reverse("admin:scheduling_scheduler_why", args=[row.pk]), {"at": "12:00:20"})
        assert page.context["why_at"]["answers"][0]["at"] == "2026-03-10 12:00:20 UTC"
        assert why(viewer, row, "2026-03-10 12:00:20")["address"]
        found = why(viewer, row, "2026-03-10 12:00:21")
        assert found["text"].startswith("It was not due then.")
        assert [line[1] for line in found["near"]] == ["2026-03-10 12:00:20 UTC", "2026-03-10 12:00:30 UTC"]
    assert why(viewer, row, "2026-03-10 12:01:00")["text"].startswith("It is not planned: '@every 10s' counts seconds")


def test_a_repeated_time_has_two_answers_and_a_skipped_one_a_note(viewer: Client, row: Scheduler) -> None:
    address = reverse("admin:scheduling_scheduler_why", args=[row.pk])
    twice = viewer.get(address, {"at": "2026-10-25 02:00"}).context["why_at"]
    assert [answer["at"] for answer in twice["answers"]] == ["2026-10-25 02:00 CEST", "2026-10-25 02:00 CET"]
    never = viewer.get(address, {"at": "2026-03-29 02:30"}).context["why_at"]
    assert never["answers"][0]["at"] == "2026-03-29 03:00 CEST"
    assert "skipped" in never["note"]


def test_times_that_cannot_be_read_are_answered(viewer: Client, row: Scheduler) -> None:
    Scheduler.objects.filter(pk=row.pk).update(schedule="nonsense<b>", timezone="Nowhere/Atlantis")
    answer = why(viewer, row, "2026-03-10 11:00")
    assert answer["text"].startswith("It is not planned: ")
    assert answer["at"] == "2026-03-10 11:00 UTC"


@pytest.mark.parametrize(
    ("typed", "wall"),
    [
        ("03:00", "2026-03-10T03:00"),
        (" 13:01 ", "2026-03-09T13:01"),
        ("2026-03-01 3:05", "2026-03-01T03:05"),
        ("2026-03-01T03:05:59", "2026-03-01T03:05"),
        ("24:00", None),
        ("2026-02-30 03:00", None),
        ("9999-12-31 23:59", None),
        ("0001-01-01 00:00", None),
        ("yesterday", None),
        ("\u0660\u0663:\u0660\u0660", None),
    ],
)
def test_what_is_typed(typed: str, wall: str | None) -> None:
    found = parsed(typed, datetime(2026, 3, 10, 13, 0))
    assert found == (None if wall is None else datetime.fromisoformat(wall))


def test_the_form_stands_on_the_schedules_page_and_refuses_with_a_sentence(viewer: Client, row: Scheduler) -> None:
    address = reverse("admin:scheduling_scheduler_why", args=[row.pk])
    assert f'action="{address}"' in viewer.get(overview(row)).content.decode()
    assert "Type a time such as 03:00" in viewer.get(address, {"at": "<b>"}).content.decode()
    assert viewer.get(address).context["why_at"]["answers"] == []


def test_only_users_who_may_view_executions_get_an_answer(row: Scheduler) -> None:
    client = logged_in(UserFactory(permissions=["scheduling.view_scheduler"]))
    assert client.get(reverse("admin:scheduling_scheduler_why", args=[row.pk])).status_code == 403
    assert "Did it run at" not in client.get(overview(row)).content.decode()


def test_an_answer_takes_few_queries(viewer: Client, row: Scheduler) -> None:
    for hours in range(30):
        execution(row, hours + 2, succeeded=True)
    with CaptureQueriesContext(connection) as captured:
        why(viewer, row, "2026-03-10 11:30")
    # One of them reads whose database it is, as on every page. The search by primary key takes one step or two.
    assert len(captured) <= 18
