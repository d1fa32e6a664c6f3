"""Tests of the admin pages of workers, reminders and processes."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.models import Process, Reminder, Worker
from tests.admin.audit import entry_line
from tests.admin.conftest import said
from tests.admin.pages import text_in
from tests.factories import HandlerSetFactory, ProcessFactory, SchedulerFactory, WorkerFactory

WORKERS = reverse("admin:scheduling_worker_changelist")
PROCESSES = reverse("admin:scheduling_process_changelist")


def change(row: Worker) -> str:
    """Return the URL of a worker's form."""
    return reverse("admin:scheduling_worker_change", args=[row.pk])


def form_errors(response: Any) -> dict[str, list[str]]:
    """Return the error messages of each field."""
    return {name: list(texts) for name, texts in response.context["adminform"].form.errors.items()}


def test_the_list_says_which_code_is_registered(viewer: Client) -> None:
    WorkerFactory(name="tests.absent")
    page = viewer.get(f"{WORKERS}?q=tests").content.decode()
    assert page.count("code missing") == 1
    assert "Does nothing." in page


def test_the_form_shows_the_codes_description_and_parameters(editor: Client) -> None:
    page = editor.get(change(Worker.objects.get(name="tests.typed"))).content.decode()
    for text in ("registered", "Needs params that fit.", "<code>since_days</code>", "whole number, 1 to 90"):
        assert text in page, text
    absent = editor.get(change(WorkerFactory(name="tests.absent"))).content.decode()
    assert "until code of this name is deployed" in absent


def test_the_name_cannot_be_changed(editor: Client) -> None:
    row = Worker.objects.get(name="tests.typed")
    values = {"name": "tests.noop2", "title": "Typed", "description": "", "params": '{"since_days": 7}'}
    assert editor.post(change(row), values).status_code == 302
    row.refresh_from_db()
    assert (row.name, row.title, row.params) == ("tests.typed", "Typed", {"since_days": 7})
    message = entry_line(LogEntry.objects.get())
    assert "params.since_days: (empty) -> 7" in message
    assert "title: (empty) -> Typed" in message


@pytest.mark.parametrize(
    ("params", "sentence"),
    [('{"since_days": 91}', "since_days: "), ("{", "This is not JSON"), ('{"x": NaN}', "no number NaN")],
)
def test_default_params_must_fit_the_params_model(editor: Client, params: str, sentence: str) -> None:
    row = Worker.objects.get(name="tests.typed")
    response = editor.post(change(row), {"title": "", "description": "", "params": params})
    assert sentence in form_errors(response)["params"][0]
    row.refresh_from_db()
    assert row.params == {}


def test_default_params_may_lack_a_required_parameter(editor: Client) -> None:
    row = Worker.objects.get(name="run_command")
    assert editor.post(change(row), {"title": "", "description": "", "params": "{}"}).status_code == 302


def test_a_worker_is_added_with_a_suggested_or_another_name(editor: Client) -> None:
    address = reverse("admin:scheduling_worker_add")
    assert '<option value="tests.typed">' in editor.get(address).content.decode()
    values = {"name": "tests.later", "title": "", "description": "", "params": "{}"}
    warning = "No code named “tests.later” is registered here. Its runs fail until such code is deployed."
    assert said(editor.post(address, values, follow=True))[0] == warning
    listed = editor.get(reverse("admin:scheduling_scheduler_add")).content.decode()
    assert ">tests.later (code missing)</option>" in listed
    assert ">tests.typed</option>" in listed
    known = WorkerFactory(name="tests.typed")
    posted = {"title": "", "description": "", "params": "{}"}
    change = reverse("admin:scheduling_worker_change", args=[known.pk])
    assert not [text for text in said(editor.post(change, posted, follow=True)) if "No code" in text]
    assert "already exists" in form_errors(editor.post(address, values))["name"][0]


def test_a_worker_with_schedules_cannot_be_deleted(editor: Client) -> None:
    row = SchedulerFactory().worker
    address = reverse("admin:scheduling_worker_delete", args=[row.pk])
    assert "Cannot delete worker" in editor.get(address).content.decode()
    editor.post(address, {"post": "yes"})
    assert Worker.objects.filter(pk=row.pk).exists()


def test_the_recipients_of_a_reminder_are_email_addresses(editor: Client) -> None:
    address = reverse("admin:scheduling_reminder_add")
    values = {"name": "stand-up", "subject": "Now", "body": "", "params": "", "recipients": "a@example.com\n<b>\n"}
    assert form_errors(editor.post(address, values)) == {"recipients": ["Not an e-mail address: “<b>”."]}
    values["recipients"] = " a@example.com \r\n\r\nb@example.com\r\n"
    assert editor.post(address, values).status_code == 302
    row = Reminder.objects.get()
    assert (row.recipients, row.params) == ("a@example.com\nb@example.com", {})
    assert "a@example.com +1" in editor.get(reverse("admin:scheduling_reminder_changelist")).content.decode()
    editor.post(reverse("admin:scheduling_reminder_change", args=[row.pk]), {**values, "subject": "Soon"})
    assert "subject: Now -> Soon" in entry_line()


def test_processes_are_alive_silent_or_stopped(viewer: Client) -> None:
    rows = {
        "alive": ProcessFactory(info={"queue": "main", "runs": 7, "running": 1}, concurrency=4),
        "silent": ProcessFactory(silent=True, info={"handlers": "--only <b>"}),
        "stopped": ProcessFactory(stopped=True, producer=True),
    }
    page = viewer.get(PROCESSES).content.decode()
    assert "1 of 4 slots busy, 7 runs started, queue “main”" in page
    assert "silent for 10 min" in page
    assert "--only &lt;b&gt;" in page
    for presence, row in rows.items():
        listed = viewer.get(f"{PROCESSES}?presence={presence}")
        assert [process.pk for process in listed.context["cl"].result_list] == [row.pk]
        detail = viewer.get(reverse("admin:scheduling_process_change", args=[row.pk])).content.decode()
        assert presence in detail
    assert [process.pk for process in viewer.get(f"{PROCESSES}?kind=producer").context["cl"].result_list] == [
        rows["stopped"].pk
    ]


def test_a_process_with_invalid_info_is_shown(viewer: Client) -> None:
    row = ProcessFactory(info=["<script>"], host="<b>")
    for address in (PROCESSES, reverse("admin:scheduling_process_change", args=[row.pk])):
        page = viewer.get(address).content.decode()
        assert "<script>&quot;" not in page
        assert "&lt;b&gt;" in page


def test_a_producer_says_in_words_what_it_does(viewer: Client) -> None:
    last = (clock.now() - timedelta(seconds=6)).isoformat()
    row = ProcessFactory(producer=True, info={"claimed": 14, "last_dispatch": last})
    page = viewer.get(PROCESSES).content.decode()
    assert re.search(r"14 runs claimed, the last one \d+ s ago", page)
    assert last not in page
    assert "Concurrency" not in page
    assert "Concurrency" not in viewer.get(reverse("admin:scheduling_process_change", args=[row.pk])).content.decode()


@pytest.mark.parametrize(
    "info", [{"claimed": -1, "last_dispatch": "9999-99-99"}, {"claimed": 1e300}, {"claimed": None}]
)
def test_a_producer_with_odd_info_is_shown(viewer: Client, info: object) -> None:
    ProcessFactory(producer=True, info=info)
    assert "claimed" not in viewer.get(PROCESSES).content.decode().partition("result_list")[2]


def test_living_processes_stand_before_stopped_ones(viewer: Client) -> None:
    old, stopped, new = ProcessFactory(), ProcessFactory(stopped=True), ProcessFactory()
    assert [row.pk for row in viewer.get(PROCESSES).context["cl"].result_list] == [new.pk, old.pk, stopped.pk]


def test_a_process_with_old_code_says_so(viewer: Client) -> None:
    now = clock.now()
    row = ProcessFactory(code_at=now - timedelta(minutes=12), code_changed_at=now - timedelta(minutes=1))
    words = re.compile(r"runs the code of \d\d:\d\d UTC, but the files changed at \d\d:\d\d UTC: restart it")
    for address in (PROCESSES, reverse("admin:scheduling_process_change", args=[row.pk])):
        assert words.search(viewer.get(address).content.decode())
    Process.objects.update(code_changed_at=None)
    for address in (PROCESSES, reverse("admin:scheduling_process_change", args=[row.pk])):
        assert "restart it" not in viewer.get(address).content.decode()


def test_a_process_says_how_its_handlers_differ(viewer: Client) -> None:
    old = HandlerSetFactory(known={"tests.same": "a", "tests.changed": "a", "tests.removed": "a"})
    new = HandlerSetFactory(known={"tests.same": "a", "tests.changed": "b", "tests.<added>": "a"})
    row, peer = ProcessFactory(handler_set=old), ProcessFactory(handler_set=old)
    ProcessFactory(handler_set=HandlerSetFactory(known={"tests.other": "a"}), silent=True)
    ProcessFactory(handler_set=HandlerSetFactory(known={"tests.other": "a"}), info={"queue": "standalone"})

    def shown() -> str:
        return text_in(viewer.get(reverse("admin:scheduling_process_change", args=[row.pk])))

    assert "3 handlers The other alive processes of the same kind know the same." in shown()
    ProcessFactory(handler_set=new)
    page = shown()
    for words in (
        "does not know worker tests.<added>.", "also knows worker tests.removed.",
        "has other parameters of worker tests.changed.",
    ):  # fmt: skip
        assert f"Beside other alive processes of the same kind, it {words}" in page
    Process.objects.exclude(pk=row.pk).update(stopped_at=clock.now())
    assert "Beside other" not in shown()
    assert peer.pk != row.pk


def test_a_process_without_recorded_handlers_is_shown(viewer: Client) -> None:
    row = ProcessFactory()
    assert viewer.get(reverse("admin:scheduling_process_change", args=[row.pk])).status_code == 200
