"""Tests of a schedule's page: state, next runs, last runs and parameters. The form is the tab "Edit"."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone as clock
from pydantic import BaseModel, SecretStr

from scheduling.handlers import Handler, registry
from scheduling.models import Artefact, Scheduler
from tests.admin.scheduler_form import ADD, change, form, overview, worker
from tests.apps.sample.workers import noop
from tests.factories import SchedulerExecutionFactory, SchedulerFactory

pytestmark = pytest.mark.django_db


class Token(BaseModel):
    """Parameters with a secret."""

    token: SecretStr
    region: str = ""


def main(client: Client, row: Scheduler) -> str:
    """Return the HTML of the page's content, without the sidebar."""
    response = client.get(overview(row))
    assert response.status_code == 200
    return response.content.decode().split('id="content-main"')[1]


def test_the_page_says_what_the_schedule_does_and_how_it_is(editor: Client) -> None:
    row = SchedulerFactory(description="Invoices", schedule="0 2 * * 1-5", timezone="Europe/Madrid", time_limit=90)
    SchedulerExecutionFactory(scheduler=row, failed=True)
    page = main(editor, row)
    for text in (
        "failing",
        "At 02:00, Monday through Friday",
        "Europe/Madrid",
        "1 min 30 s",
        "tests.noop",
        "Next runs",
    ):
        assert text in page, text
    assert "<input" not in page.replace('<input type="hidden"', "")  # nothing to fill in by chance


def test_a_viewer_gets_the_same_page_without_edit(editor: Client, viewer: Client) -> None:
    row = SchedulerFactory()
    assert change(row) in main(editor, row)
    page = main(viewer, row)
    assert change(row) not in page
    assert "/run/" not in page
    assert "/pause/" not in page
    assert "/delete/" not in page
    assert reverse("admin:scheduling_scheduler_history", args=[row.pk]) in page


def test_an_operator_may_run_and_pause_but_not_edit(operator: Client) -> None:
    row = SchedulerFactory()
    page = main(operator, row)
    assert reverse("admin:scheduling_scheduler_run", args=[row.pk]) in page
    assert reverse("admin:scheduling_scheduler_pause", args=[row.pk]) in page
    assert change(row) not in page


def test_a_user_without_rights_sees_neither_page_nor_form(no_rights: Client) -> None:
    row = SchedulerFactory()
    assert no_rights.get(overview(row)).status_code == 403
    assert no_rights.get(change(row)).status_code == 403


def test_the_last_runs_have_links_to_output_and_the_number_of_files(viewer: Client) -> None:
    row = SchedulerFactory()
    execution = SchedulerExecutionFactory(scheduler=row, succeeded=True)
    Artefact.objects.create(execution=execution, attempt=1, filename="a.csv", content_type="text/csv", file="gone.csv")
    page = main(viewer, row)
    assert f"/schedulerexecution/{execution.pk}/change/#output" in page
    assert "1 file" in page


def test_secrets_are_masked(editor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    secretive = Handler("worker", "tests.overview", noop, params=Token)
    monkeypatch.setitem(registry._handlers, ("worker", "tests.overview"), secretive)
    row = SchedulerFactory(handler="tests.overview", params={"token": "hunter2", "region": "eu"})
    page = main(editor, row)
    assert "hunter2" not in page
    assert "region" in page


def test_a_save_leads_to_the_page_and_continue_to_the_form(editor: Client) -> None:
    answer = editor.post(ADD, form(worker=worker()))
    row = Scheduler.objects.get()
    assert answer.headers["Location"] == overview(row)
    assert editor.post(change(row), form(worker=worker(), description="Other")).headers["Location"] == overview(row)
    answer = editor.post(change(row), form(worker=worker(), _continue="1"))
    assert answer.headers["Location"] == change(row)
    answer = editor.post(ADD, form(worker=worker(), _continue="1"))
    assert answer.headers["Location"] == change(Scheduler.objects.latest("pk"))


def test_a_schedule_that_does_not_exist(editor: Client) -> None:
    for name in ("change", "edit"):
        answer = editor.get(reverse(f"admin:scheduling_scheduler_{name}", args=[999]))
        assert answer.status_code == 302


@pytest.mark.parametrize(
    "columns",
    [
        {"schedule": "99 * * * *", "plan_error": "Minute: 99 is above 59.", "next_run_at": None},
        {"timezone": "Mars/Olympus"},
        {"pause_reason": "<b>", "status": False},
        {"params": []},
        {"next_run_at": clock.now() - timedelta(hours=1)},
    ],
)
def test_rows_that_plain_sql_has_written(viewer: Client, columns: dict[str, Any]) -> None:
    row = SchedulerFactory()
    Scheduler.objects.filter(pk=row.pk).update(**columns)
    page = main(viewer, row)
    assert "<b>" not in page


def test_the_number_of_queries_is_bounded(editor: Client) -> None:
    row = SchedulerFactory()
    SchedulerExecutionFactory.create_batch(12, scheduler=row, succeeded=True)
    with CaptureQueriesContext(connection) as captured:
        page = main(editor, row)
    assert len(captured) <= 20
    assert len(re.findall(r"#output", page)) == 10
