"""Tests of audit entries: reading an entry returns what was written, and the size of an entry is limited.

Text inside a value is never read as an edit.
"""

from __future__ import annotations

import json

import pytest
from django.contrib.admin.models import CHANGE, LogEntry
from django.test import Client
from django.urls import reverse

from scheduling.models import Scheduler
from scheduling.operations.audit import message, params_edits, read
from scheduling.operations.params_diff import Change
from tests.admin.scheduler_form import change, form, worker
from tests.factories import SchedulerFactory, UserFactory, WorkerFactory


def edited(edits: list[Change], text: str = "") -> LogEntry:
    """Store an audit entry with these edits and return the entry."""
    row, user = WorkerFactory(), UserFactory()
    (entry,) = LogEntry.objects.log_actions(user.pk, [row], CHANGE, message(text, edits))
    entry.refresh_from_db()
    return entry


EDITS = [Change("status", "yes", "no"), Change("pause_reason", None, "it burns")]


@pytest.mark.parametrize("text", ["", "run now"])
@pytest.mark.parametrize("edits", [[], EDITS[:1], EDITS, [Change("params.\u202e", "\x00", "\ud800")]])
def test_an_entry_is_read_as_it_was_written(db: None, text: str, edits: list[Change]) -> None:
    assert read(edited(edits, text)) == (text, edits)


def test_django_can_read_an_entry(db: None) -> None:
    assert edited(EDITS).get_change_message() == "Changed status and pause_reason."
    assert edited(EDITS, "run now").get_change_message() == "Changed status and pause_reason (run now)."
    assert edited([], "run now").get_change_message() == "run now"


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        ("", ""),
        ("status: yes -> no", "status: yes -> no"),
        ("[not JSON", "[not JSON"),
        ("[]", "No fields changed."),
        ('{"text": "x"}', '{"text": "x"}'),
        ('[{"added": {}}]', "Added."),
        ('[{"changed": {"fields": ["Name"]}}]', "Changed Name."),
        ('[{"changed": {"fields": ["Name"], "text": "", "edits": [{"field": "name"}]}}]', "Changed Name."),
        ('[{"changed": {"fields": ["Name"], "text": "", "edits": 7}}]', "Changed Name."),
    ],
)
def test_an_entry_that_other_code_wrote_is_shown_as_text(stored: str, text: str) -> None:
    assert read(LogEntry(change_message=stored)) == (text, [])


def test_values_and_number_of_parameters_are_bounded() -> None:
    new = {f"name{number}" * 40: "\U0001f600" * 5_000 for number in range(80)}
    edits = params_edits(None, [], new)
    assert edits[-1] == Change("params", "…", "and 30 more")
    assert len(edits) == 51
    assert max(len(edit.name) + len(edit.new or "") for edit in edits) <= 300
    assert len(json.dumps(message("", edits))) < 200_000


def test_hidden_and_reordering_characters_are_made_visible(editor: Client) -> None:
    entry = edited([Change("title\u202e", "\x1b[31m", "<b>\u202egpj.exe")], "\u2066said")
    page = editor.get(reverse("admin:scheduling_worker_history", args=[entry.object_id])).content.decode()
    assert not {"\u202e", "\x1b", "\u2066"} & set(page)
    assert "<b>" not in page
    for text in ("title\\u202e", "\\x1b[31m", "&lt;b&gt;\\u202egpj.exe", "\\u2066said"):
        assert text in page, text


def test_text_inside_a_value_is_not_read_as_an_edit(editor: Client) -> None:
    row = SchedulerFactory(description="Nightly", worker=WorkerFactory(name="tests.flood"))
    forged = "x; status: yes -> no; pause_reason: (empty) -> mallory -> was here"
    values = form(worker=worker("tests.flood"), description=forged, pause_reason=forged)
    values["paused"] = "on"
    # The handler knew the parameter when it was stored.
    Scheduler.objects.filter(pk=row.pk).update(params={"a; status: no -> yes": "old"})
    editor.post(change(row), {**values, "params": '{"a; status: no -> yes": "; status: no -> yes"}'})
    text, found = read(LogEntry.objects.latest("id"))
    assert text == ""
    assert [edit.name for edit in found] == ["description", "params.a; status: no -> yes", "status", "pause_reason"]
    assert (found[0].old, found[0].new) == ("Nightly", forged)
    assert (found[1].old, found[1].new) == ('"old"', '"; status: no -> yes"')


def test_the_history_page_shows_old_and_new_values(editor: Client) -> None:
    row = SchedulerFactory(description="Nightly", worker=WorkerFactory(name="tests.typed"), params={"since_days": 3})
    hostile = "<script>alert(1)</script>"
    values = form(worker=worker("tests.typed"), description=hostile, schedule="0 9 * * *", params='{"since_days": 4}')
    editor.post(change(row), values)
    editor.post(reverse("admin:scheduling_scheduler_pause", args=[row.pk]), {"reason": "it burns"})
    editor.post(reverse("admin:scheduling_scheduler_run", args=[row.pk]))
    page = editor.get(reverse("admin:scheduling_scheduler_history", args=[row.pk])).content.decode()
    for text in (
        '<th scope="row">Parameters: since_days</th>',
        "<del><code>3</code></del>",
        "<ins><code>4</code></ins>",
        "<ins><code>&lt;script&gt;alert(1)&lt;/script&gt;</code></ins>",
        '<th scope="row">Paused</th>',
        "<del><code>no</code></del>",
        "<ins><code>yes</code></ins>",
        '<th scope="row">Reason for the pause</th>',
        "<ins><code>it burns</code></ins>",
        ">Run now</td>",
        "editor",
    ):
        assert text in page, text
    assert hostile not in page
    assert (
        page.index(">Run now</td>") < page.index("it burns") < page.index("<ins><code>4</code></ins>")
    )  # newest first
    assert "Active" not in page.split('id="change-history"')[1]


def test_the_history_of_a_target_shows_old_and_new_values(editor: Client) -> None:
    target = WorkerFactory(name="tests.typed")
    address = reverse("admin:scheduling_worker_change", args=[target.pk])
    editor.post(address, {"title": "Sync", "description": "", "params": '{"since_days": 5}'})
    page = editor.get(reverse("admin:scheduling_worker_history", args=[target.pk])).content.decode()
    assert "<ins><code>Sync</code></ins>" in page
    assert '<th scope="row">Parameters: since_days</th>' in page
