"""Tests of the form of a schedule: errors at the right fields, the preview, the date's time zone, and audit entries."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.admin.schedulers.next_runs_panel import next_runs_panel
from scheduling.handlers import Handler, RetryPolicy, registry
from scheduling.models import Scheduler, Worker
from tests.admin.audit import entry_line
from tests.admin.scheduler_form import ADD, change, form, overview, worker
from tests.apps.sample.workers import noop
from tests.factories import ReportFactory, SchedulerFactory, UserFactory, WorkerFactory


def errors(response: Any) -> dict[str, list[str]]:
    """Return the error messages of each field."""
    return {name: list(texts) for name, texts in response.context["adminform"].form.errors.items()}


def test_adding_plans_the_next_run_and_makes_the_creator_its_user(editor: Client) -> None:
    response = editor.post(ADD, form(worker=worker(), schedule="0 8 * * 1-5", timezone="Europe/Madrid"))
    assert response.status_code == 302
    row = Scheduler.objects.get(description="Nightly")
    assert row.next_run_at is not None
    assert row.next_run_at > clock.now()
    assert row.user == User.objects.get(username="editor")


def test_a_chosen_user_is_kept(editor: Client) -> None:
    other = UserFactory()
    editor.post(ADD, form(worker=worker(), user=other.pk))
    assert Scheduler.objects.get(description="Nightly").user == other


@pytest.mark.parametrize(
    ("values", "field", "sentence"),
    [
        ({"schedule": "61 8 * * *"}, "schedule", "Minute: '61' is outside 0-59."),
        ({"schedule": "0 0 31 2 *"}, "schedule", "would never fire"),
        ({"schedule": "0 8 * *"}, "schedule", "five fields"),
        ({"schedule": "x" * 300}, "schedule", "255 characters"),
        ({"schedule": ""}, "schedule", "Give either a cron schedule or one date and time."),
        (
            {"date_time_0": "2099-01-01", "date_time_1": "08:00"},
            "schedule",
            "Give either a cron schedule or one date and time.",
        ),
        (
            {"schedule": "", "date_time_0": "2001-01-01", "date_time_1": "08:00"},
            "date_time",
            "This instant has passed.",
        ),
        ({"schedule": "", "date_time_0": "2099-01-01"}, "date_time", "Give a time beside the date."),
        ({"schedule": "", "date_time_1": "08:00"}, "date_time", "Give a date beside the time."),
        ({"schedule": "", "date_time_0": "tomorrow", "date_time_1": "08:00"}, "date_time", "Enter a valid date."),
        ({"schedule": "@every 1d12h"}, "schedule", "write hours alone, such as '@every 36h'"),
        ({"schedule": "@every 10s"}, "schedule", "let the setting CRON_SECONDS be true."),
        ({"timezone": "Europe/Madird"}, "timezone", "did you mean 'Europe/Madrid'?"),
        ({"timezone": "../../etc/passwd"}, "timezone", "is not an IANA time zone"),
        ({"worker": ""}, "worker", "Choose exactly one target"),
        ({"max_retries": "20"}, "max_retries", "Retries must be from 0 to 19, not 20."),
        ({"max_retries": "many"}, "max_retries", "Enter a whole number."),
        ({"retry_delay_ms": "10ms"}, "retry_delay_ms", "must be from 1s to 1h, not 10ms"),
        ({"retry_delay_ms": "300000"}, "retry_delay_ms", "Write a number with a unit, such as 30s, 5m or 1h."),
        ({"time_limit": "500ms"}, "time_limit", "Give whole seconds."),
        ({"retry_multiplier": "0.5"}, "retry_multiplier", "must be from 1.0 to 10.0"),
        ({"retry_multiplier": "NaN"}, "retry_multiplier", "Enter a number."),
        ({"retry_delay_ms": "5s", "retry_max_delay_ms": "2s"}, "retry_max_delay_ms", "must be at least"),
        ({"params": '{"a": '}, "params", "This is not JSON"),
        ({"params": "[1]"}, "params", "Write a JSON object"),
        ({"params": '{"nonsense": 1}'}, "params", "nonsense: there is no such parameter"),
        ({"language": "tlh"}, "language", "is not one of the available choices"),
    ],
)
def test_errors_are_shown_at_their_fields_and_nothing_is_stored(
    editor: Client, values: dict[str, Any], field: str, sentence: str
) -> None:
    before = Scheduler.objects.count()
    response = editor.post(ADD, form(**{"worker": worker(), **values}))
    assert response.status_code == 200
    found = errors(response)
    assert sentence in " ".join(found[field])
    assert set(found) == {field}
    assert Scheduler.objects.count() == before
    assert not LogEntry.objects.exists()


def test_two_targets_are_refused(editor: Client) -> None:
    response = editor.post(ADD, form(worker=worker(), report=ReportFactory().pk))
    assert "Choose exactly one target" in errors(response)["worker"][0]


def test_several_errors_are_shown_at_once(editor: Client) -> None:
    response = editor.post(ADD, form(schedule="61 * * * *", timezone="Nowhere", params="{", max_retries="99"))
    assert set(errors(response)) == {"schedule", "timezone", "params", "max_retries", "worker"}


def test_the_retry_policy_is_checked_against_the_handlers_policy(
    editor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = Handler("worker", "tests.patient", noop, retry=RetryPolicy(delay_ms=60_000))
    monkeypatch.setitem(registry._handlers, ("worker", "tests.patient"), handler)
    # The first delay is 30 s in the settings and 60 s in the handler. The handler's delay applies, so a maximum of 40 s
    # is too small.
    response = editor.post(ADD, form(worker=WorkerFactory(name="tests.patient").pk, retry_max_delay_ms="40s"))
    assert "must be at least the first delay (1m)" in errors(response)["retry_max_delay_ms"][0]


def test_params_are_checked_against_the_handlers_model(editor: Client) -> None:
    response = editor.post(ADD, form(worker=worker("tests.typed"), params='{"since_days": 0}'))
    assert errors(response)["params"][0].startswith("since_days: ")
    response = editor.post(ADD, form(worker=worker("tests.typed"), params='{"since_days": 7}'))
    assert response.status_code == 302


def test_target_with_invalid_params_is_an_error_and_no_crash(editor: Client) -> None:
    Worker.objects.filter(name="tests.typed").update(params=["no", "object"])
    response = editor.post(ADD, form(worker=worker("tests.typed")))
    assert "not a JSON object. Fix them first" in errors(response)["params"][0]


def test_code_that_is_not_registered_here_is_no_error(editor: Client) -> None:
    absent = WorkerFactory(name="tests.absent")
    assert editor.post(ADD, form(worker=absent.pk)).status_code == 302


# --- the date is in the schedule's time zone --------------------------------------------------------


def test_a_date_is_read_and_shown_in_the_schedules_zone(editor: Client) -> None:
    values = form(worker=worker(), schedule="", date_time_0="2099-07-01", date_time_1="08:00", timezone="Europe/Madrid")
    assert editor.post(ADD, values).status_code == 302
    row = Scheduler.objects.get(description="Nightly")
    assert row.date_time == datetime(2099, 7, 1, 6, 0, tzinfo=UTC)
    page = editor.get(change(row)).content.decode()
    assert 'value="2099-07-01"' in page
    assert 'value="08:00:00"' in page
    # If the user changes nothing, the instant stays. If the user changes the time zone, the local time stays 08:00.
    again = {**values, "date_time_1": "08:00:00", "user": row.user_id}
    editor.post(change(row), again)
    row.refresh_from_db()
    assert row.date_time == datetime(2099, 7, 1, 6, 0, tzinfo=UTC)
    assert entry_line() == "Nothing was changed."
    editor.post(change(row), {**again, "timezone": "Asia/Tokyo"})
    row.refresh_from_db()
    assert row.date_time == datetime(2099, 6, 30, 23, 0, tzinfo=UTC)


def test_a_viewer_reads_the_date_in_the_schedules_zone(viewer: Client) -> None:
    row = SchedulerFactory(once=True, timezone="Asia/Tokyo", date_time=datetime(2099, 1, 1, 0, 30, tzinfo=UTC))
    assert "2099-01-01 09:30:00 JST" in viewer.get(change(row)).content.decode()
    Scheduler.objects.filter(pk=row.pk).update(timezone="Nowhere")
    assert "2099-01-01 00:30:00 UTC" in viewer.get(change(row)).content.decode()


@time_machine.travel(datetime(2026, 1, 1, tzinfo=UTC), tick=False)
def test_a_time_that_a_clock_change_skips_becomes_the_end_of_the_gap(editor: Client) -> None:
    editor.post(
        ADD,
        form(worker=worker(), schedule="", date_time_0="2026-03-29", date_time_1="02:30", timezone="Europe/Madrid"),
    )
    assert Scheduler.objects.get(description="Nightly").date_time == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)


SECOND = datetime(2026, 10, 25, 1, 30, tzinfo=UTC)
"""The second 02:30 of that day in Berlin. The first one is an hour before."""


@time_machine.travel(datetime(2026, 10, 24, 12, tzinfo=UTC), tick=False)
def test_an_edit_of_something_else_keeps_an_instant_in_a_repeated_hour(editor: Client) -> None:
    row = SchedulerFactory(schedule="", date_time=SECOND, timezone="Europe/Berlin")
    typed = {"date_time_0": "2026-10-25", "date_time_1": "02:30:00", "timezone": "Europe/Berlin"}
    values = form(worker=worker(), schedule="", **typed)
    for changed in ({"description": "Other"}, {"timezone": "Europe/Paris"}):
        assert editor.post(change(row), {**values, **changed}).status_code == 302
        row.refresh_from_db()
        assert (row.date_time, row.next_run_at) == (SECOND, SECOND)
    # A zone whose clock shows another time then: the local time stays, and the instant moves.
    editor.post(change(row), {**values, "timezone": "UTC"})
    row.refresh_from_db()
    assert (row.date_time, row.next_run_at) == (SECOND + timedelta(hours=1), SECOND + timedelta(hours=1))
    # It is typed anew, so it is the first one.
    editor.post(change(row), values)
    row.refresh_from_db()
    assert row.date_time == SECOND - timedelta(hours=1)


@pytest.mark.parametrize("name", ["active_from", "active_until"])
@time_machine.travel(datetime(2026, 10, 24, 12, tzinfo=UTC), tick=False)
def test_an_edit_of_something_else_keeps_a_bound_in_a_repeated_hour(editor: Client, name: str) -> None:
    row = SchedulerFactory(schedule="0 * * * *", timezone="Europe/Berlin", **{name: SECOND})
    typed = {f"{name}_0": "2026-10-25", f"{name}_1": "02:30:00", "timezone": "Europe/Berlin"}
    values = form(worker=worker(), schedule="0 * * * *", description="Other", **typed)
    assert editor.post(change(row), values).status_code == 302
    row.refresh_from_db()
    assert (row.description, getattr(row, name)) == ("Other", SECOND)


# --- the preview ------------------------------------------------------------------------------------


@time_machine.travel(datetime(2026, 3, 26, 12, 0, tzinfo=UTC), tick=False)
def test_the_next_ten_runs_in_zone_utc_and_from_now(editor: Client) -> None:
    row = SchedulerFactory(schedule="0 9 * * *", timezone="Europe/Madrid")
    page = editor.get(change(row)).content.decode()
    assert "At 09:00" in page
    for text in (
        "Fri 2026-03-27 09:00:00 CET",
        '<time class="sch-time" datetime="2026-03-27T08:00:00Z" data-viewer>2026-03-27 08:00:00</time>',
        "in 20 h",
        "Sun 2026-03-29 09:00:00 CEST",
        "2026-03-29 07:00:00",
        "Sun 2026-04-05 09:00:00 CEST",
    ):
        assert text in page, text
    assert "2026-04-06 09:00:00" not in page


def test_a_refused_form_still_shows_the_preview(editor: Client) -> None:
    response = editor.post(ADD, form(worker="", schedule="0 0 * * 1"))
    assert set(errors(response)) == {"worker"}
    assert "At 00:00, only on Monday" in response.content.decode()
    assert len(response.content.decode().split("<tr><td>Mon ")) == 11


def test_the_preview_may_have_fewer_than_ten_runs() -> None:
    panel = next_runs_panel(Scheduler(schedule="0 12 31 12 *"), datetime(9998, 12, 30, tzinfo=UTC))
    assert panel.count("<tr><td>") == 2
    assert "9999-12-31 12:00:00" in panel
    assert "It has no run to come." in next_runs_panel(Scheduler(date_time=clock.now() - timedelta(days=1)))


def test_paused_schedule_shows_hypothetical_runs(editor: Client) -> None:
    assert "these would be its next runs" in editor.get(change(SchedulerFactory(off=True))).content.decode()


def test_the_form_of_a_new_schedule_has_no_preview_yet(editor: Client) -> None:
    page = editor.get(ADD).content.decode()
    assert "Enter a cron expression to see the next runs." in page
    assert '<datalist id="id_timezone_list">' in page
    assert '<option value="Europe/Madrid">' in page


def test_an_interval_is_added_and_explained_without_a_script(editor: Client) -> None:
    page = editor.get(ADD).content.decode()
    assert "each 90 minutes of real time, counted from 2001-01-01 00:00 UTC" in page
    assert '<details class="sch-details sch-every" data-every="id_schedule" hidden>' in page
    assert '<option value="s">' not in page
    with override_settings(CRON_SECONDS=True):
        assert '<option value="s">seconds</option>' in editor.get(ADD).content.decode()
    editor.post(ADD, form(worker=worker(), schedule="@every 2w on fri at 08:00", timezone="UTC"))
    row = Scheduler.objects.get()
    assert row.next_run_at is not None
    assert (row.schedule, f"{row.next_run_at:%a %H:%M}") == ("@every 2w on fri at 08:00", "Fri 08:00")
    listed = editor.get(reverse("admin:scheduling_scheduler_changelist")).content.decode()
    assert "At 08:00, every second Friday, counted from 2001-01-01" in listed


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        ("@every 90m from 2026-01-05T00:00Z", "Every 90 minutes, counted from 2026-01-05 00:00 UTC"),
        ("@every 3d at 08:00 from 2026-01-05", "At 08:00, every third day, counted from 2026-01-05"),
        ("@every 2w on fri at 08:00", "At 08:00, every second Friday, counted from 2001-01-01"),
        ("@every 10s", "Every 10 seconds, counted from 2001-01-01 00:00 UTC"),
    ],
)
def test_the_pages_of_each_kind_of_interval(editor: Client, schedule: str, words: str) -> None:
    with override_settings(CRON_SECONDS=True):
        row = SchedulerFactory(schedule=schedule, timezone="Europe/Madrid")
        for address in (overview(row), change(row)):
            page = editor.get(address).content.decode()
            assert words in page
            assert "data-viewer>" in page  # the next runs
    page = editor.get(change(row)).content.decode()
    assert ("counts seconds, which this site does not allow" in page) is (schedule == "@every 10s")


def test_the_table_of_retries(editor: Client) -> None:
    row = SchedulerFactory(max_retries=2, retry_delay_ms=10_000, retry_multiplier=3.0, retry_jitter=True)
    page = editor.get(change(row)).content.decode()
    assert "own policy over that of the settings." in page
    assert "3 attempts at most." in page
    assert "<tr><td>2</td><td>10 s</td><td>10 s</td></tr>" in page
    assert "<tr><td>3</td><td>30 s</td><td>40 s</td></tr>" in page
    assert "Jitter: each wait" in page
    inherited = editor.get(change(SchedulerFactory(worker=WorkerFactory(name="tests.fail")))).content.decode()
    assert "Inherited from the target&#x27;s code." in inherited
    assert 'placeholder="inherited: 1s"' in inherited


def test_an_invalid_stored_schedule_is_shown_with_its_error(editor: Client) -> None:
    row = SchedulerFactory()
    Scheduler.objects.filter(pk=row.pk).update(
        schedule="99 * * * *", timezone="Mars/Olympus", plan_error="Minute: '99' <b>is</b> outside 0-59."
    )
    page = editor.get(change(row)).content.decode()
    assert "It cannot be planned and will not run:" in page
    assert "&lt;b&gt;is&lt;/b&gt;" in page
    assert editor.get(reverse("admin:scheduling_scheduler_changelist")).status_code == 200
    assert errors(editor.post(change(row), form(worker=worker(), schedule="99 * * * *")))["schedule"]


# --- audit entries ----------------------------------------------------------------------------------


def test_an_edit_is_recorded_with_old_and_new_values(editor: Client) -> None:
    row = SchedulerFactory(
        description="Nightly", schedule="0 8 * * *", params={}, worker=WorkerFactory(name="tests.typed")
    )
    values = form(
        worker=worker("tests.typed"), schedule="0 9 * * *", params='{"since_days": 3}', timezone="UTC", max_retries="5"
    )
    values["paused"] = "on"
    assert editor.post(change(row), values).status_code == 302
    entry = LogEntry.objects.latest("id")
    assert entry_line(entry) == (
        "params.since_days: (empty) -> 3; schedule: 0 8 * * * -> 0 9 * * *; timezone: (empty) -> UTC; "
        "status: yes -> no; max_retries: (empty) -> 5"
    )
    page = editor.get(reverse("admin:scheduling_scheduler_history", args=[row.pk])).content.decode()
    assert "<del><code>0 8 * * *</code></del>" in page
    assert "<ins><code>0 9 * * *</code></ins>" in page
    assert "Parameters: since_days" in page


def test_targets_are_recorded_by_their_names(editor: Client) -> None:
    row = SchedulerFactory(description="Nightly")
    editor.post(change(row), form(worker=worker("tests.fail")))
    assert entry_line() == "worker: tests.noop -> tests.fail"


def test_saving_keeps_the_next_run_that_a_producer_has_stored(editor: Client) -> None:
    row = SchedulerFactory(description="Nightly")
    moved = clock.now() + timedelta(days=9)
    Scheduler.objects.filter(pk=row.pk).update(next_run_at=moved)
    editor.post(change(row), form(worker=worker(), description="Renamed"))
    row.refresh_from_db()
    assert (row.description, row.next_run_at) == ("Renamed", moved)


def test_deleting_keeps_the_history_and_says_so(editor: Client) -> None:
    from tests.factories import SchedulerExecutionFactory

    execution = SchedulerExecutionFactory(succeeded=True)
    address = reverse("admin:scheduling_scheduler_delete", args=[execution.scheduler.pk])
    assert "Its past executions stay on record" in editor.get(address).content.decode()
    assert editor.post(address, {"post": "yes"}).status_code == 302
    execution.refresh_from_db()
    assert execution.scheduler_id is None
    page = editor.get(reverse("admin:scheduling_schedulerexecution_change", args=[execution.pk]))
    assert "Its schedule is deleted" in page.content.decode()


def shown(client: Client, row: Scheduler) -> dict[str, Any]:
    """Return the form's hidden inputs, which hold the initial values. A browser posts these inputs with the form."""
    page = client.get(change(row))
    return {
        f"initial-{name}": str(page.context["adminform"].form[name].value())
        for name in ("paused", "pause_reason")
        if f'name="initial-{name}"' in page.content.decode()
    }


def test_the_box_paused_pauses_and_says_so(editor: Client) -> None:
    row = SchedulerFactory()
    assert "Active:" not in editor.get(change(row)).content.decode().split('id="content"')[1]
    assert editor.post(change(row), form(worker=row.worker_id, paused="on")).status_code == 302
    row.refresh_from_db()
    assert not row.status
    assert "Paused" in (page := editor.get(change(row)).content.decode())
    assert 'name="paused"' in page
    assert editor.get(change(row)).context["adminform"].form["paused"].value() is True
    assert editor.post(change(row), form(worker=row.worker_id)).status_code == 302
    row.refresh_from_db()
    assert row.status


def test_a_reader_of_the_form_sees_whether_it_is_paused(viewer: Client) -> None:
    for off, word in ((True, "True"), (False, "False")):
        page = viewer.get(change(SchedulerFactory(off=off))).content.decode()
        row = page.split("field-paused_shown")[1].split("form-row")[0]
        assert "Paused" in row
        assert f'alt="{word}"' in row


def test_an_old_form_does_not_resume_a_paused_schedule(editor: Client) -> None:
    row = SchedulerFactory()
    unseen = shown(editor, row)
    assert unseen == {"initial-paused": "False", "initial-pause_reason": ""}
    Scheduler.objects.filter(pk=row.pk).update(status=False, pause_reason="the bank is closed")
    address = change(row)
    data = form(worker=row.worker_id, description="Weekly", **unseen)
    assert editor.post(address, data).status_code == 302
    row.refresh_from_db()
    assert (row.description, row.status, row.pause_reason) == ("Weekly", False, "the bank is closed")
    # If the operator changes the status in a newly loaded form, the change is stored.
    assert editor.post(address, form(worker=row.worker_id, **shown(editor, row))).status_code == 302
    row.refresh_from_db()
    assert (row.status, row.pause_reason) == (True, "")


@pytest.mark.parametrize("chosen", ["worker={fast}", "worker={fast}&reminder=", "worker={fast}&worker={fast}"])
def test_the_form_for_a_chosen_target_shows_the_retry_policy_of_its_code(editor: Client, chosen: str) -> None:
    fast = WorkerFactory(name="tests.mark")
    policy = registry.find("worker", "tests.mark").retry
    assert policy is not None
    page = editor.get(f"{ADD}?{chosen.format(fast=fast.pk)}").content.decode()
    assert "Inherited from the target&#x27;s code." in page
    assert f'placeholder="inherited: {policy.max_retries}"' in page
    assert Scheduler.objects.count() == 0


@pytest.mark.parametrize(
    "chosen", ["", "worker=999999", "worker=-1", "worker=x", "worker={fast}&report=1", "worker=1e9"]
)
def test_the_form_without_one_target_shows_the_retry_policy_of_the_settings(editor: Client, chosen: str) -> None:
    fast = WorkerFactory(name="tests.mark")
    page = editor.get(f"{ADD}?{chosen.format(fast=fast.pk)}").content.decode()
    assert "Inherited from the settings." in page
