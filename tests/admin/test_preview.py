"""Tests of the preview that a form shows while a user types a schedule: its texts, its permission and its cost."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from scheduling.admin.schedulers.preview import runs_preview
from scheduling.handlers import Handler, RetryPolicy, registry
from scheduling.models import Scheduler
from tests.admin.conftest import VIEW, logged_in
from tests.apps.sample.workers import noop
from tests.core.crafted import CRAFTED
from tests.factories import SchedulerFactory, UserFactory, WorkerFactory
from tests.steps import steps

RUNS = reverse("admin:scheduling_scheduler_preview", args=["runs"])
RETRY = reverse("admin:scheduling_scheduler_preview", args=["retry"])


@pytest.fixture
def at() -> Any:
    """Stop the clock at noon UTC on 2026-03-26, three days before daylight saving time begins in Madrid."""
    with time_machine.travel(datetime(2026, 3, 26, 12, 0, tzinfo=UTC), tick=False):
        yield


def ask(client: Client, address: str = RUNS, **typed: str) -> str:
    """Return the HTML of the preview panel for the typed values."""
    response = client.get(address, typed)
    assert response.status_code == 200
    assert response["X-Part"] in {"runs", "retry"}
    return response.content.decode()


@pytest.mark.usefixtures("at")
def test_words_runs_a_day_and_ten_runs(editor: Client) -> None:
    panel = ask(editor, schedule="0 9 * * 1-5", timezone="Europe/Madrid")
    assert "At 09:00, Monday through Friday" in panel
    assert "1 run on each day that matches the schedule, 261 in the next 365 days." in panel
    assert panel.count("data-viewer>") == 10
    assert "Fri 2026-03-27 09:00:00 CET" in panel
    assert "in 20 h" in panel
    assert "clocks" not in panel
    assert 'data-live-said="At 09:00, Monday through Friday. Next run: 2026-03-27 09:00:00 CET, in 20 h."' in panel


@pytest.mark.usefixtures("at")
@pytest.mark.parametrize(
    ("schedule", "sentences"),
    [
        ("*/5 * * * *", ["288 runs a day.", "twice. It follows real time, and its pace stays the same."]),
        (
            "30 2 * * *",
            [
                "1 run a day.",
                "right after the hour that the clocks skip",
                "Sun 2026-03-29: the clocks skip 02:00 to 03:00. What falls due in it runs once, at 03:00.",
                "Sun 2026-10-25: the clocks show 02:00 to 03:00 twice. It runs the first time only.",
            ],
        ),
        (
            "*/30 2 * * *",
            ["its runs of that hour do not take place on this day", "its runs of that hour take place twice"],
        ),
        ("* * * * *", ["1,440 runs a day.", "It runs each minute. If that is not meant"]),
        ("* 8 * * *", ["It runs each minute of the hours named. For once an hour, write 0 for the minute."]),
        (
            "@every 90m",
            [
                "Every 90 minutes, counted from 2001-01-01 00:00 UTC",
                "16 runs a day.",
                "It is counted in real time, so its local times change when the clocks do.",
            ],
        ),
        ("@every 7h", ["1,251 runs in the next 365 days."]),
        ("@every 1m", ["1,440 runs a day.", "It runs at least once in each minute."]),
        (
            "@every 1d at 02:30 from 2026-03-28",
            [
                "At 02:30, every day, from 2026-03-28",
                "1 run a day.",
                "right after the hour that the clocks skip",
            ],
        ),
        (
            "@every 2w on fri at 08:00",
            ["At 08:00, every second Friday, counted from 2001-01-01", "27 runs in the next"],
        ),
        ("@every 10s", ["sch-note-bad", "counts seconds, which this site does not allow"]),
        ("@every 2d at 25:00", ["sch-note-bad", "At: &#x27;25:00&#x27; is no time of the day"]),
        ("0 0 31 2 *", ["sch-note-bad", "would never fire"]),
        ("61 8 * * *", ["sch-note-bad", "Minute: &#x27;61&#x27; is outside 0-59."]),
        ("0 8 * *", ["not 4; seconds and years are not supported."]),
        ("", ["Enter a cron expression to see the next runs."]),
    ],
)
def test_the_preview_shows_warnings_and_errors(editor: Client, schedule: str, sentences: list[str]) -> None:
    panel = ask(editor, schedule=schedule, timezone="Europe/Madrid")
    for sentence in sentences:
        assert sentence in panel, sentence


@pytest.mark.usefixtures("at")
def test_one_date_and_time(editor: Client) -> None:
    when = {"date_time_0": "2026-03-29", "date_time_1": "02:30", "timezone": "Europe/Madrid"}
    panel = ask(editor, **when)
    assert "Once at 2026-03-29 03:00:00 CEST" in panel
    assert "The clocks skip 02:30 on this day: it runs right after." in panel
    assert "The clocks show 02:30 twice" in ask(editor, **{**when, "date_time_0": "2026-10-25"})
    assert "It has no run to come." in ask(editor, **{**when, "date_time_0": "2026-03-01"})
    assert "Give a time beside the date." in ask(editor, date_time_0="2026-03-29")
    assert "Give either" in ask(editor, schedule="0 8 * * *", **when)
    assert "is not an IANA time zone" in ask(editor, **{**when, "timezone": "Nowhere"})


@pytest.mark.usefixtures("at")
def test_a_stored_date_in_a_repeated_hour_stays_as_it_is(editor: Client) -> None:
    stored = SchedulerFactory(
        schedule="", date_time=datetime(2026, 10, 25, 1, 30, tzinfo=UTC), timezone="Europe/Madrid"
    )
    typed = {"date_time_0": "2026-10-25", "date_time_1": "02:30:00", "timezone": "Europe/Madrid"}
    panel = ask(editor, **typed, previewed=str(stored.pk))
    assert "Once at 2026-10-25 02:30:00 CET" in panel
    assert "The clocks show 02:30 twice on this day: it runs the second time." in panel
    assert "it runs the first time." in ask(editor, **typed)


def test_the_preview_of_a_paused_schedule_says_so(editor: Client) -> None:
    assert "these would be its next runs" in ask(editor, schedule="0 8 * * *", paused="on")


@pytest.mark.parametrize(
    "typed",
    [
        {"schedule": "x" * 5_000},
        {"schedule": "<script>alert(1)</script>"},
        {"schedule": "0 8 * * * \x00"},
        {"schedule": "0 8 * * *", "timezone": "<b>" * 50},
        {"schedule": "0 8 * * *", "timezone": "../../etc/passwd"},
        {"date_time_0": "9999-12-31", "date_time_1": "23:59", "timezone": "America/New_York"},
        {"date_time_0": "9" * 3_000, "date_time_1": "1"},
    ],
)
def test_wrong_input_gives_a_message(editor: Client, typed: dict[str, str]) -> None:
    panel = ask(editor, **typed)
    assert "sch-note-bad" in panel
    assert "<script" not in panel
    assert "<b>" not in panel
    assert len(panel) < 2_000


def test_the_table_of_attempts_follows_the_fields_and_the_target(
    editor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    panel = ask(editor, RETRY, max_retries="2", retry_delay_ms="10s", retry_multiplier="3", retry_jitter="true")
    assert "<tr><td>3</td><td>30 s</td><td>40 s</td></tr>" in panel
    assert "Jitter: each wait" in panel
    handler = Handler("worker", "tests.patient", noop, retry=RetryPolicy(max_retries=1, delay_ms=60_000))
    monkeypatch.setitem(registry._handlers, ("worker", "tests.patient"), handler)
    panel = ask(editor, RETRY, worker=str(WorkerFactory(name="tests.patient").pk))
    assert "Inherited from the target&#x27;s code." in panel
    assert "<tr><td>2</td><td>1 min</td><td>1 min</td></tr>" in panel
    for typed, sentence in (
        ({"max_retries": "20"}, "Retries must be from 0 to 19, not 20."),
        ({"max_retries": "many"}, "Retries: Enter a whole number."),
        ({"retry_multiplier": "NaN"}, "Delay multiplier: Enter a number."),
        ({"max_retries": "9" * 4_000}, "Retries must be from 0 to 19"),
        ({"worker": "9" * 30}, "4 attempts at most."),
        ({"worker": "0"}, "4 attempts at most."),
    ):
        panel = ask(editor, RETRY, **typed)
        assert sentence in panel, typed
        assert len(panel) < 2_000


def test_the_preview_needs_the_permission_to_add_or_change(viewer: Client, operator: Client, no_rights: Client) -> None:
    for client in (viewer, operator, no_rights):
        assert client.get(RUNS, {"schedule": "0 8 * * *"}).status_code == 403
    assert Client().get(RUNS).status_code == 302
    adder = logged_in(UserFactory(permissions=[*VIEW, "scheduling.add_scheduler"]))
    assert "At 08:00" in ask(adder, schedule="0 8 * * *")


def test_the_preview_changes_nothing(editor: Client) -> None:
    assert editor.post(RUNS, {"schedule": "0 8 * * *"}).status_code == 405
    assert editor.get(reverse("admin:scheduling_scheduler_preview", args=["nothing"])).status_code == 404
    before = Scheduler.objects.count()
    with CaptureQueriesContext(connection) as captured:
        ask(editor, schedule="0 8 * * *", timezone="Europe/Madrid")
    assert all(query["sql"].startswith("SELECT") for query in captured.captured_queries)
    # One query reads the session, and one query reads the user.
    assert len(captured.captured_queries) == 2
    assert Scheduler.objects.count() == before


# --- the parameters, for another target ------------------------------------------------------------


def params_address(pk: int = 0) -> str:
    """Return the URL from which the schedule's form requests the inputs for the params of another target."""
    return reverse("admin:scheduling_scheduler_params", args=[pk])


def test_the_inputs_belong_to_the_chosen_target(editor: Client) -> None:
    typed = str(WorkerFactory(name="tests.typed").pk)
    before = Scheduler.objects.count()
    response = editor.post(params_address(), {"worker": typed, "params": '{"since_days": 4}'})
    assert response["X-Part"] == "params"
    assert 'name="params.field.since_days" value="4"' in response.content.decode()
    for chosen in ({"worker": typed, "reminder": "5"}, {"worker": "9" * 40}, {"worker": "x"}, {}):
        page = editor.post(params_address(), {**chosen, "params": '{"a": 1}'}).content.decode()
        assert "params.field." not in page
        assert "&quot;a&quot;: 1" in page
    assert Scheduler.objects.count() == before


def test_the_inputs_need_the_permission_to_edit(viewer: Client, operator: Client) -> None:
    row = SchedulerFactory()
    for client in (viewer, operator):
        for pk in (0, row.pk, 10**30):
            assert client.post(params_address(pk), {"params": "{}"}).status_code == 403
    adder = logged_in(UserFactory(permissions=[*VIEW, "scheduling.add_scheduler"]))
    assert adder.post(params_address(), {"params": "{}"}).status_code == 200
    # A user who may add schedules may request the inputs for a duplicate of a schedule that the user may view.
    assert adder.post(params_address(row.pk), {"params": "{}"}).status_code == 200
    assert adder.get(params_address()).status_code == 405
    blind = logged_in(UserFactory(permissions=["scheduling.add_scheduler"]))
    assert blind.post(params_address(row.pk), {"params": "{}"}).status_code == 403


def test_a_mistyped_zone_has_a_button_that_mends_it(editor: Client) -> None:
    panel = ask(editor, schedule="0 8 * * *", timezone="berlin")
    assert 'data-live-fill="timezone" value="Europe/Berlin" hidden>Use Europe/Berlin</button>' in panel
    assert "data-live-fill" not in ask(editor, schedule="0 8 * * *", timezone="no such place")
    assert "data-live-fill" not in ask(editor, schedule="61 8 * * *", timezone="Europe/Berlin")


def test_a_preview_has_a_limited_cost(db: None) -> None:
    """A preview may make only a limited number of function calls, even for a very long text."""
    for expression in [*CRAFTED, "0," * 1_000_000]:
        typed = {"schedule": expression, "timezone": "Europe/Madrid", "paused": ""}
        assert steps(runs_preview, typed) <= 1_000_000, expression[:40]
        assert len(runs_preview(typed)) < 10_000
