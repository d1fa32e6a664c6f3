"""A pause made in the admin names its user in the row that it leaves, however the pause ends."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.models import Scheduler, SchedulerExecution
from scheduling.producer.sweeps import plan_stale
from tests.admin.scheduler_form import change, form
from tests.factories import SchedulerFactory

pytestmark = pytest.mark.django_db

LIST = reverse("admin:scheduling_scheduler_changelist")


def half_an_hour_ago(row: Scheduler) -> None:
    row.refresh_from_db()
    assert not row.status
    Scheduler.objects.filter(pk=row.pk).update(paused_at=clock.now() - timedelta(minutes=30), planned_at=None)


@pytest.mark.parametrize("way", ["page", "list", "form", "code", "plain SQL"])
def test_the_row_names_the_user_who_paused(editor: Client, way: str) -> None:
    row = SchedulerFactory(schedule="* * * * *")
    editor.post(reverse("admin:scheduling_scheduler_pause", args=[row.pk]), {"reason": "storage full."})
    half_an_hour_ago(row)
    row.refresh_from_db()
    match way:
        case "page":
            editor.post(reverse("admin:scheduling_scheduler_resume", args=[row.pk]))
        case "list":
            editor.post(LIST, {"action": "resume_selected", "_selected_action": [row.pk], "index": "0"})
        case "form":
            values = form(worker=row.worker.pk, schedule=row.schedule, description=row.description)
            assert editor.post(change(row), values).status_code == 302
        case "code":
            row.status = True
            row.save()
        case _:
            Scheduler.objects.filter(pk=row.pk).update(status=True)
            plan_stale(clock.now())
    left = SchedulerExecution.objects.get()
    assert left.state == "skipped"
    assert left.missed in (30, 31)
    assert left.reason.startswith("Paused by editor from ")
    assert f": storage full. {left.missed} occurrences did not run." in left.reason


def test_a_pause_in_the_form_names_its_user(editor: Client) -> None:
    row = SchedulerFactory(schedule="* * * * *")
    values = form(worker=row.worker.pk, schedule=row.schedule, description=row.description)
    values["paused"] = "on"
    assert editor.post(change(row), values).status_code == 302
    row.refresh_from_db()
    assert row.paused_by == "editor"
    half_an_hour_ago(row)
    editor.post(change(row), {**values, "description": "renamed"})
    row.refresh_from_db()
    assert (row.description, row.paused_by) == ("renamed", "editor")
    assert not SchedulerExecution.objects.exists()


def test_the_pages_say_that_a_pause_ends_a_service(editor: Client) -> None:
    row, usual = SchedulerFactory(stay_alive=True), SchedulerFactory()
    page = editor.get(reverse("admin:scheduling_scheduler_pause", args=[row.pk])).content.decode()
    assert "is a service: it ends within seconds, and does not run until it is resumed." in page
    chosen = {"action": "pause_selected", "_selected_action": [row.pk, usual.pk]}
    page = editor.post(reverse("admin:scheduling_scheduler_changelist"), chosen).content.decode()
    assert "1 of them is a service, which ends within seconds." in page
    panel = editor.get(reverse("admin:scheduling_scheduler_change", args=[row.pk])).content.decode()
    assert "It is a service: these times start it if it does not run." in panel
