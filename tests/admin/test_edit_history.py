"""The history of edits: each entry taken apart, and no value that can pass for an edit."""

from __future__ import annotations

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from scheduling.admin.edit_history import Edit, edits_of
from scheduling.admin.text import told
from tests.admin.test_scheduler_form import change, form, worker
from tests.factories import SchedulerFactory, WorkerFactory

NAMES = {"schedule", "status", "params", "description", "pause_reason"}


@pytest.mark.parametrize(
    ("message", "edits"),
    [
        ("schedule: 0 8 * * * -> 0 9 * * *", [Edit("schedule", "0 8 * * *", "0 9 * * *")]),
        (
            "status: yes -> no; pause_reason: (empty) -> it burns",
            [Edit("status", "yes", "no"), Edit("pause_reason", None, "it burns")],
        ),
        ("params.region: (empty) -> \"eu\"", [Edit("params.region", None, '"eu"')]),
        # From before values were kept apart.
        ("description: a -> b -> c", [Edit("description", whole="a -> b -> c")]),
        ("params: {} -> {\"a\": 1}", [Edit("params", "{}", '{"a": 1}')]),
        ("run now", []),
        ("run now, for this run only: since_days: 3 -> 7", []),
        ("Nothing was changed.", []),
        ("elsewhere: 1 -> 2", []),
        ("", []),
    ],
)  # fmt: skip
def test_an_entry_is_taken_apart(message: str, edits: list[Edit]) -> None:
    assert edits_of(message, NAMES) == edits


def test_a_value_cannot_pass_for_an_edit(editor: Client) -> None:
    row = SchedulerFactory(description="Nightly", worker=WorkerFactory(name="tests.flood"))
    forged = "x; status: yes -> no; pause_reason: (empty) -> mallory -> was here"
    values = form(worker=worker("tests.flood"), description=forged, pause_reason=forged)
    del values["status"]
    editor.post(change(row), {**values, "params": '{"a; status: no -> yes": "; status: no -> yes"}'})
    message = LogEntry.objects.latest("id").get_change_message()
    found = edits_of(message, NAMES)
    assert [each.name for each in found] == ["description", "params.a__status__no_->_yes", "status", "pause_reason"]
    assert [each.whole for each in found] == [""] * 4
    assert (found[0].old, found[0].new) == ("Nightly", told(forged))


def test_the_page_shows_before_and_after(editor: Client) -> None:
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
        '<th scope="row">Reason for the pause</th>',
        "<ins><code>it burns</code></ins>",
        ">run now</td>",
        "editor",
    ):
        assert text in page, text
    assert hostile not in page


def test_targets_have_it_too(editor: Client) -> None:
    target = WorkerFactory(name="tests.typed")
    address = reverse("admin:scheduling_worker_change", args=[target.pk])
    editor.post(address, {"title": "Sync", "description": "", "params": '{"since_days": 5}'})
    page = editor.get(reverse("admin:scheduling_worker_history", args=[target.pk])).content.decode()
    assert "<ins><code>Sync</code></ins>" in page
    assert '<th scope="row">Parameters: since_days</th>' in page
