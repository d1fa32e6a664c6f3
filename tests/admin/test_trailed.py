"""The admin log records the values of each row that a user adds, changes or deletes.

Secrets are hidden, and long values are cut.
"""

from __future__ import annotations

import pytest
from django.contrib.admin.models import ADDITION, DELETION, LogEntry
from django.test import Client
from django.urls import reverse
from pydantic import BaseModel, SecretStr

from reports.models import Report
from scheduling.handlers import registry
from scheduling.models import Reminder, Scheduler
from scheduling.operations.audit import read
from scheduling.operations.params_diff import Change
from tests.admin.audit import entry_line
from tests.factories import ReminderFactory, ReportFactory, SchedulerFactory, WorkerFactory

pytestmark = pytest.mark.django_db


def delete(client: Client, row: Scheduler | Report | Reminder) -> str:
    """Delete the row on its admin page. Return the text of the log entry."""
    label = f"{row._meta.app_label}_{row._meta.model_name}"
    assert client.post(reverse(f"admin:{label}_delete", args=[row.pk]), {"post": "yes"}).status_code == 302
    entry = LogEntry.objects.get(action_flag=DELETION)
    assert (entry.user and entry.user.username, entry.object_id) == ("editor", str(row.pk))
    return entry_line(entry)


class Orders(BaseModel):
    """A params model with a secret."""

    region: str = "us"
    token: SecretStr = SecretStr("")


def test_the_entry_of_a_deleted_schedule_has_all_values(editor: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = registry.Handler("worker", "tests.orders", lambda params: None, params=Orders)
    monkeypatch.setitem(registry._handlers, ("worker", "tests.orders"), handler)
    worker = WorkerFactory(name="tests.orders", title="Orders")
    row = SchedulerFactory(
        worker=worker,
        description="Nightly; status: no -> yes",
        schedule="0 3 * * *",
        params={"region": "us", "token": "hunter2"},
    )
    said = delete(editor, row)
    for part in ("schedule: 0 3 * * * -> (empty)", "worker: Orders -> (empty)", 'params.region: "us" -> (empty)'):
        assert part in said.split("; "), said
    _text, edits = read(LogEntry.objects.get(action_flag=DELETION))
    # The description contains `; status: no -> yes`. This text must not be read as an edit of the status.
    assert Change("description", "Nightly; status: no -> yes", None) in edits
    assert 'params.token: "••••••" -> (empty)' in said


def test_the_delete_action_of_a_list_logs_the_values(editor: Client) -> None:
    rows = [ReminderFactory(subject=f"Subject {number}", body="b" * 100_000) for number in range(2)]
    address = reverse("admin:scheduling_reminder_changelist")
    data = {"action": "delete_selected", "_selected_action": [row.pk for row in rows], "post": "yes"}
    assert editor.post(address, data).status_code == 302
    assert not Reminder.objects.exists()
    said = sorted(map(entry_line, LogEntry.objects.filter(action_flag=DELETION)))
    assert all(any(f"subject: Subject {number} -> (empty)" in text for text in said) for number in range(2))
    assert max(map(len, said)) < 1_000


def test_the_entry_of_an_added_row_has_its_values(editor: Client) -> None:
    data = {"name": "stand-up", "subject": "Now", "body": "", "recipients": "a@example.com", "params": "{}"}
    assert editor.post(reverse("admin:scheduling_reminder_add"), data).status_code == 302
    entry = LogEntry.objects.get(action_flag=ADDITION)
    assert entry_line(entry).startswith(
        "name: (empty) -> stand-up; recipients: (empty) -> a@example.com; subject: (empty) -> Now"
    )


def test_the_entry_of_a_changed_report_has_old_and_new_values(editor: Client) -> None:
    row = ReportFactory(title="Totals")
    address = reverse("admin:cron_reports_report_change", args=[row.pk])
    assert editor.post(address, {"title": "Sums", "description": "", "params": "{}"}).status_code == 302
    assert entry_line(LogEntry.objects.get()) == "title: Totals -> Sums"
    assert "Totals" in editor.get(reverse("admin:cron_reports_report_history", args=[row.pk])).content.decode()


def test_the_entry_of_an_unchanged_row_says_so(editor: Client) -> None:
    row = ReportFactory(title="Totals")
    address = reverse("admin:cron_reports_report_change", args=[row.pk])
    assert editor.post(address, {"title": "Totals", "description": "", "params": "{}"}).status_code == 302
    assert entry_line(LogEntry.objects.get()) == "Nothing was changed."
