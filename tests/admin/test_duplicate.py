"""The schedule's page has a Duplicate button and a list of recent runs."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from bs4 import BeautifulSoup
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock
from pydantic import BaseModel, SecretStr

from scheduling.handlers import registry
from scheduling.models import Scheduler
from tests.admin.audit import entry_line
from tests.admin.conftest import VIEW, logged_in
from tests.admin.scheduler_form import ADD, form, overview
from tests.apps.sample.workers import noop
from tests.factories import SchedulerExecutionFactory, SchedulerFactory, UserFactory, WorkerFactory


class Orders(BaseModel, extra="forbid"):
    """The params model of the handler in these tests."""

    region: str = "eu"
    token: SecretStr = SecretStr("")


@pytest.fixture
def row(db: None, monkeypatch: pytest.MonkeyPatch) -> Scheduler:
    """A schedule whose params hold a secret."""
    handler = registry.Handler("worker", "tests.orders", noop, params=Orders)
    monkeypatch.setitem(registry._handlers, ("worker", "tests.orders"), handler)
    made: Scheduler = SchedulerFactory(
        description="Invoices", worker=WorkerFactory(name="tests.orders"), schedule="0 8 * * 1-5",
        timezone="Europe/Madrid", params={"region": "us", "token": "hunter2"}, max_retries=5, stay_alive=True,
        overlap="skip",
    )  # fmt: skip
    return made


def copy_address(row: Scheduler) -> str:
    """Return the address of the form for a duplicate of this schedule."""
    return f"{ADD}?copy={row.pk}"


def test_the_form_is_filled_in_and_stores_nothing_yet(editor: Client, row: Scheduler) -> None:
    before = Scheduler.objects.count()
    assert copy_address(row) in editor.get(overview(row)).content.decode()
    response = editor.get(copy_address(row))
    page = response.content.decode()
    made = response.context["adminform"].form
    assert made["description"].value() == "Invoices (copy)"
    assert made["worker"].value() == row.worker.pk
    assert (made["schedule"].value(), made["timezone"].value()) == ("0 8 * * 1-5", "Europe/Madrid")
    assert (made["max_retries"].value(), made["stay_alive"].value(), made["paused"].value()) == (5, True, True)
    assert made["overlap"].value() == "skip"
    assert 'name="params.field.region" value="us"' in page
    assert "A copy of “Invoices”." in page
    assert "hunter2" not in page
    assert Scheduler.objects.count() == before


def test_the_panels_show_the_copied_times_and_retry_policy(editor: Client, row: Scheduler) -> None:
    page = BeautifulSoup(editor.get(copy_address(row)).content, "html.parser")
    runs, attempts = (page.select_one(f".sch-live[data-live-url*='/{part}/']") for part in ("runs", "retry"))
    assert runs is not None
    assert attempts is not None
    for text in ("At 08:00, Monday through Friday", "In Europe/Madrid", "It is paused: these would be its next runs."):
        assert text in runs.text, text
    assert len(attempts.select("tbody tr")) == 1 + 5


def test_saved_duplicate_keeps_the_hidden_secret(editor: Client, row: Scheduler) -> None:
    values = form(worker=row.worker.pk, description="Other", schedule="0 9 * * *")
    values["paused"] = "on"
    typed = {"params.for": "worker/tests.orders", "params.field.region": "de", "params.field.token": "••••••"}
    assert editor.post(copy_address(row), {**values, **typed}).status_code == 302
    made = Scheduler.objects.get(description="Other")
    assert (made.status, made.params) == (False, {"region": "de", "token": "hunter2"})
    said = entry_line()
    assert said.startswith(f"added as a copy of schedule {row.pk}; description: (empty) -> Other; ")
    assert "hunter" not in LogEntry.objects.latest("id").change_message
    row.refresh_from_db()
    assert row.params == {"region": "us", "token": "hunter2"}


@time_machine.travel(datetime(2026, 10, 24, 12, tzinfo=UTC), tick=False)
def test_a_copied_date_in_a_repeated_hour_is_the_same_instant(editor: Client) -> None:
    second = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
    source = SchedulerFactory(schedule="", date_time=second, timezone="Europe/Berlin")
    typed = {"date_time_0": "2026-10-25", "date_time_1": "02:30:00", "timezone": "Europe/Berlin"}
    values = form(worker=source.worker.pk, description="Other", schedule="", paused="on", **typed)
    assert editor.post(copy_address(source), values).status_code == 302
    assert Scheduler.objects.get(description="Other").date_time == second


def test_a_secret_is_not_copied_to_another_target(editor: Client, row: Scheduler) -> None:
    other = WorkerFactory(name="tests.noop")
    response = editor.post(copy_address(row), form(worker=other.pk, description="Other", params='{"token": "••••••"}'))
    assert response.status_code == 200
    assert "It was hidden" in response.content.decode()
    assert not Scheduler.objects.filter(description="Other").exists()


@pytest.mark.parametrize("key", ["999999", "abc", "", "9" * 40, "1' OR 1=1"])
def test_an_unknown_key_gives_an_empty_form(editor: Client, row: Scheduler, key: str) -> None:
    response = editor.get(f"{ADD}?copy={key}")
    assert response.status_code == 200
    assert "A copy of" not in response.content.decode()


def test_a_copy_needs_the_permissions_to_view_and_to_add(operator: Client, row: Scheduler) -> None:
    assert copy_address(row) not in operator.get(overview(row)).content.decode()
    assert operator.get(copy_address(row)).status_code == 403
    blind = logged_in(UserFactory(permissions=["scheduling.add_scheduler"]))
    response = blind.get(copy_address(row))
    assert response.status_code == 200
    assert "Invoices" not in response.content.decode()


# --- recent runs ------------------------------------------------------------------------------------


def test_recent_runs_with_their_durations(viewer: Client) -> None:
    row = SchedulerFactory(timezone="Asia/Tokyo")
    assert "It has not run yet." in viewer.get(overview(row)).content.decode()
    now = clock.now()
    for seconds in range(1, 36):
        last = SchedulerExecutionFactory(
            scheduler=row, succeeded=True, started_at=now - timedelta(seconds=100 + seconds),
            finished_at=now - timedelta(seconds=100),
        )  # fmt: skip
    failed = SchedulerExecutionFactory(scheduler=row, failed=True)
    page = viewer.get(overview(row)).content.decode().split('id="sch-recent"')[1]
    assert "Its last 30 runs" in page
    assert 'class="sch-svg dash-bars"' in page
    assert "Last 30 runs: 29 succeeded, 1 failed" in page
    assert "96 %" in page
    assert page.count("<tr><td><a ") == 10
    assert page.index(f"/{failed.pk}/change/") < page.index(f"/{last.pk}/change/")
    assert "35 s" in page
    assert " JST</time>" in page
    assert f"?scheduler={row.pk}" in page


def test_queries_for_recent_runs_do_not_grow_with_the_history(viewer: Client) -> None:
    row = SchedulerFactory()

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert viewer.get(overview(row)).status_code == 200
        return len(captured.captured_queries)

    SchedulerExecutionFactory(scheduler=row, succeeded=True)
    few = queries()
    SchedulerExecutionFactory.create_batch(80, scheduler=row, succeeded=True)
    assert queries() == few


def test_recent_runs_need_the_permission_to_view_executions(db: None) -> None:
    row: Any = SchedulerExecutionFactory(succeeded=True).scheduler
    client = logged_in(UserFactory(permissions=["scheduling.view_scheduler"]))
    assert "sch-recent" not in client.get(overview(row)).content.decode()
    assert "sch-recent" in logged_in(UserFactory(permissions=VIEW)).get(overview(row)).content.decode()
