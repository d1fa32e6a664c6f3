"""Tests of the page of one execution: timeline, similar failures, changed parameters, message and origin."""

from __future__ import annotations

import re
import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock
from pydantic import BaseModel, SecretStr

from scheduling.admin.executions.attempts import attempt_rows, ended_attempts
from scheduling.admin.executions.lineage import lineage
from scheduling.admin.executions.similar import Similar
from scheduling.admin.executions.timeline import WIDTH, spans, timeline
from scheduling.core.occurrences import manual_key, rerun_of
from scheduling.handlers import registry
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.visibility import EVERYTHING
from tests.admin.audit import entry_line
from tests.admin.conftest import said
from tests.admin.pages import page_of
from tests.apps.sample.workers import noop
from tests.factories import (
    AttemptFactory,
    ManualExecutionFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    WorkerFactory,
)
from tests.support import NOON


class Secretive(BaseModel):
    """A params model with a secret."""

    token: SecretStr
    region: str = "eu"


def at(seconds: float) -> datetime:
    """Return the instant that is `seconds` seconds after NOON."""
    return NOON + timedelta(seconds=seconds)


def timeline_lines(row: SchedulerExecution, now: datetime) -> list[str]:
    """Return the lines of the page's timeline as plain text."""
    steps, _bar = timeline(row, ended_attempts(row)[::-1], now)
    lines = (f"{step.at} {step.gap} {step.what} {step.about}" for step in steps)
    return [re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", line)).strip() for line in lines]


@pytest.fixture
def retried(db: None) -> SchedulerExecution:
    """An execution that was claimed two seconds late. Attempt 1 crashed, attempt 2 failed and attempt 3 waits."""
    row: SchedulerExecution = SchedulerExecutionFactory(
        retrying=True, attempt=2, scheduled_at=NOON, executed_at=at(2), published_at=at(3), container_id="producer-1",
        wake_at=at(100), started_at=at(34),
    )  # fmt: skip
    AttemptFactory(
        execution=row, number=1, started_at=at(4), finished_at=at(14), outcome="crashed", signal=9, exit_code=None,
        consumer="box-1", pid=77, error_class="Crashed", retry_at=at(34),
    )  # fmt: skip
    AttemptFactory(execution=row, number=2, started_at=at(34), finished_at=at(40), consumer="box-2", retry_at=at(100))
    return row


def test_the_table_of_attempts_says_how_long_the_run_waited_after_each(db: None) -> None:
    row = SchedulerExecutionFactory(running=True, attempt=3, started_at=at(200))
    AttemptFactory(execution=row, number=1, started_at=at(4), finished_at=at(14), retry_at=at(34))
    AttemptFactory(
        execution=row, number=2, started_at=at(40), finished_at=at(50), outcome="snoozed", error_class="", retry_at=None
    )
    assert [line["wait"] for line in attempt_rows(row, ended_attempts(row), at(210))] == ["-", "2 min 30 s", "20 s"]
    row.state, row.started_at = "queued", at(40)
    assert [line["wait"] for line in attempt_rows(row, ended_attempts(row), at(210))] == ["-", "20 s"]


def test_the_timeline_shows_each_step_and_each_wait(retried: SchedulerExecution) -> None:
    assert timeline_lines(retried, at(50)) == [
        "2026-03-10 12:00:00 UTC due trigger: cron",
        "2026-03-10 12:00:02 UTC +2 s claimed by producer-1",
        "2026-03-10 12:00:03 UTC +1 s published into the queue “main”",
        "2026-03-10 12:00:04 UTC +1 s attempt 1 started in box-1, process 77",
        "2026-03-10 12:00:14 UTC +10 s attempt 1 crashed after 10 s, signal SIGKILL, Crashed",
        "next attempt due 20 s later",
        "2026-03-10 12:00:34 UTC +20 s attempt 2 started in box-2, process 4242",
        "2026-03-10 12:00:40 UTC +6 s attempt 2 failed after 6 s, ValueError",
        "next attempt due in 50 s",
        "retrying",
    ]


def test_the_timeline_of_a_running_and_of_a_skipped_execution(db: None) -> None:
    running = SchedulerExecutionFactory(
        running=True, scheduled_at=NOON, executed_at=NOON, published_at=NOON, started_at=at(1), progress="3/10"
    )
    assert timeline_lines(running, at(9))[-2:] == [
        "2026-03-10 12:00:01 UTC +1 s attempt 1 started in host-1-aaaa, process 4242",
        "running for 8 s so far",
    ]
    skipped = SchedulerExecutionFactory(skipped=True, scheduled_at=NOON, executed_at=at(60), finished_at=at(60))
    assert timeline_lines(skipped, at(90))[-1] == "2026-03-10 12:01:00 UTC skipped 1 min after it was due"


def test_a_republish_comes_after_the_attempts_before_it(db: None) -> None:
    row = SchedulerExecutionFactory(
        scheduled_at=NOON, executed_at=NOON, published_at=at(500), attempt=1, retry_base=1, requested_by="ada"
    )
    AttemptFactory(execution=row, number=1, started_at=at(1), finished_at=at(2))
    found = timeline_lines(row, at(501))
    assert found[0].endswith("due trigger: cron (ada)")
    assert found[-2].startswith("2026-03-10 12:08:20 UTC +8 min 18 s published")


def test_the_bar_is_drawn_to_scale_and_has_titles(retried: SchedulerExecution) -> None:
    found = spans(retried, ended_attempts(retried)[::-1], at(50))
    assert [(span.tone, span.seconds) for span in found] == [
        ("wait", 2), ("wait", 2), ("bad", 10), ("wait", 20), ("bad", 6), ("wait", 10),
    ]  # fmt: skip
    _steps, bar = timeline(retried, ended_attempts(retried)[::-1], at(50))
    assert 'role="img"' in bar
    assert "<title>2 attempts within 50 s: waited to be claimed: 2 s; " in bar
    assert "<title>attempt 1 crashed: 10 s</title>" in bar
    widths = [float(width) for width in re.findall(r'<rect[^>]* width="([\d.]+)"', bar)]
    assert sum(widths) == pytest.approx(WIDTH, abs=1)
    assert widths[2] == pytest.approx(WIDTH / 5, rel=0.02)


def test_a_short_attempt_after_a_long_wait_stays_visible(db: None) -> None:
    row = SchedulerExecutionFactory(succeeded=True, scheduled_at=NOON, executed_at=at(80_000), attempt=1)
    AttemptFactory(execution=row, number=1, outcome="succeeded", started_at=at(80_000), finished_at=at(80_000.01))
    _steps, bar = timeline(row, ended_attempts(row), at(90_000))
    assert float(re.findall(r'<rect[^>]* width="([\d.]+)"', bar)[-1]) >= 3


def test_the_timeline_shows_only_the_last_twenty_attempts(viewer: Client) -> None:
    row = SchedulerExecutionFactory(failed=True, attempt=30)
    for number in range(1, 31):
        AttemptFactory(execution=row, number=number)
    page = viewer.get(page_of(row)).content.decode()
    assert "10 earlier attempts are only in the table below" in page
    assert "attempt 10 started" not in page
    assert "attempt 11 started" in page


# --- similar failures -------------------------------------------------------------------------------


def test_failures_with_the_same_error_are_counted_for_a_day(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock.now()
    row = SchedulerExecutionFactory(failed=True)
    AttemptFactory(execution=row, number=1)
    assert (
        "In the last 24 hours, no other run in the inbox failed with this error."
        in viewer.get(page_of(row)).content.decode()
    )
    SchedulerExecutionFactory.create_batch(3, failed=True)
    SchedulerExecutionFactory(failed=True, error_message="quite another problem")
    SchedulerExecutionFactory(failed=True, finished_at=now - timedelta(hours=25))
    SchedulerExecutionFactory(discarded=True, fingerprint=row.fingerprint)
    page = viewer.get(page_of(row)).content.decode()
    link = re.search(r'href="([^"]+)"[^>]*>3 similar in the last 24 h</a>', page)
    assert link
    rows = viewer.get(link[1]).context["cl"].result_list
    assert {listed.fingerprint for listed in rows} == {row.fingerprint}
    monkeypatch.setattr(Similar, "failures_compared", 4)
    assert re.search(r">\d\+ similar in the last 24 h</a>", viewer.get(page_of(row)).content.decode())


def test_the_release_of_each_attempt_is_shown(viewer: Client) -> None:
    row = SchedulerExecutionFactory(succeeded=True, attempt=2)
    AttemptFactory(execution=row, number=1)
    AttemptFactory(execution=row, number=2, outcome="succeeded", release="<r>42")
    context = viewer.get(page_of(row)).context
    assert [line["release"] for line in context["attempts"]] == ["<code>&lt;r&gt;42</code>", ""]
    assert dict(context["facts"])["Release"] == "<code>&lt;r&gt;42</code>"


def test_the_resources_of_each_attempt_are_shown(viewer: Client) -> None:
    row = SchedulerExecutionFactory(succeeded=True, attempt=2)
    AttemptFactory(execution=row, number=1)
    AttemptFactory(execution=row, number=2, outcome="succeeded", cpu_ms=90_500, peak_memory_kb=70 * 1024)
    context = viewer.get(page_of(row)).context
    assert [line["used"] for line in context["attempts"]] == [["CPU 1 min 30 s", "memory 70.0\xa0MB"], []]
    facts = dict(context["facts"])
    assert (facts["CPU time"], facts["Peak memory"]) == ("1 min 30 s", "70.0\xa0MB")


def test_headers_are_shown_and_secret_ones_are_masked(viewer: Client, settings: Any) -> None:
    settings.BROKER_URL = "amqp://nowhere"
    headers = {"trace": "<b>4bf92f", "X-Api-Key": "hunter2", "empty-token": ""}
    row = SchedulerExecutionFactory(succeeded=True, attempt=1, headers=headers)
    page = viewer.get(page_of(row)).content.decode()
    assert "hunter2" not in page
    assert page.count("&quot;X-Api-Key&quot;: &quot;••••••&quot;") == 2  # also in the message
    assert "&lt;b&gt;4bf92f" in page
    assert viewer.get(page_of(SchedulerExecutionFactory(succeeded=True))).context["headers"] == ""


def test_a_cancelled_attempt_is_not_shown_as_an_error(viewer: Client) -> None:
    row = SchedulerExecutionFactory(cancelled=True, attempt=1, error_class="Cancelled", error_message="By olga.")
    AttemptFactory(execution=row, number=1, outcome="cancelled", error_class="Cancelled")
    assert viewer.get(page_of(row)).context["error"] is None
    # Attempt 2 failed, and the execution was cancelled before the retry. The page shows the error of attempt 2.
    AttemptFactory(execution=row, number=2)
    assert viewer.get(page_of(row)).context["error"]["name"] == "ValueError"


# --- parameters -------------------------------------------------------------------------------------


def test_the_page_shows_how_the_params_differ_from_the_schedule(viewer: Client) -> None:
    scheduler = SchedulerFactory()
    Scheduler.objects.filter(pk=scheduler.pk).update(params={"a": 1, "b": [2], "kept": "x"})
    row = SchedulerExecutionFactory(succeeded=True, scheduler=scheduler, params={"a": 1, "b": [3], "gone": True})
    response = viewer.get(page_of(row))
    assert [(change.name, change.old, change.new) for change in response.context["difference"]] == [
        ("b", "[3]", "[2]"), ("gone", "true", None), ("kept", None, '"x"'),
    ]  # fmt: skip
    assert "Differs from the schedule's current parameters" in response.content.decode()
    assert "See the schedule</a>" in response.content.decode()
    assert "Change them" not in response.content.decode()
    Scheduler.objects.filter(pk=scheduler.pk).update(params=row.params)
    assert "The same as the schedule's current parameters." in viewer.get(page_of(row)).content.decode()
    for params in ([1], "text"):
        Scheduler.objects.filter(pk=scheduler.pk).update(params=params)
        assert viewer.get(page_of(row)).context["difference"] is None
    assert viewer.get(page_of(SchedulerExecutionFactory(scheduler=None))).context["difference"] is None


def test_parameters_that_an_operator_chose_are_not_an_edit_of_the_schedule(viewer: Client) -> None:
    chosen, edited = "Chosen for this run", "Differs from the schedule's current parameters"
    scheduler = SchedulerFactory(worker=WorkerFactory(name="tests.typed"), params={"since_days": 3})
    own = ManualExecutionFactory(scheduler=scheduler, params={"since_days": 7})
    planned = SchedulerExecutionFactory(scheduler=scheduler, params={"since_days": 7})

    def heading(row: SchedulerExecution) -> str:
        text = viewer.get(page_of(row)).content.decode()
        return next(words for words in (chosen, edited) if words in text)

    assert [heading(own), heading(planned)] == [chosen, edited]
    scheduler.params = {"since_days": 9}
    scheduler.save()
    assert heading(own) == edited


# --- the message ------------------------------------------------------------------------------------


def test_the_message_of_a_retry_contains_the_last_error(
    viewer: Client, retried: SchedulerExecution, settings: Any
) -> None:
    settings.BROKER_URL = "amqp://nowhere"
    panel = viewer.get(page_of(retried)).context["message"]
    assert "It asks for attempt 3." in panel["about"]
    for text in ("&quot;attempt&quot;: 3", f"&quot;execution_id&quot;: {retried.pk}", "&quot;params_scheduler&quot;"):
        assert text in panel["body"]
    for text in ("&quot;x-retry-count&quot;: 2", "ValueError: the invoice has no total", "2026-03-10T12:00:14.000Z"):
        assert text in panel["headers"], text


def test_the_message_of_a_failure_has_the_failed_queue_fields(viewer: Client, settings: Any) -> None:
    settings.BROKER_URL = "amqp://nowhere"
    row = SchedulerExecutionFactory(failed=True)
    panel = viewer.get(page_of(row)).context["message"]
    assert "&quot;failed_reason&quot;: &quot;ValueError: the invoice has no total&quot;" in panel["body"]
    assert "&quot;attempt&quot;: 4" in panel["body"]


def test_the_message_is_folded_and_absent_if_the_table_is_the_transport(viewer: Client, settings: Any) -> None:
    row = SchedulerExecutionFactory(failed=True)
    assert 'id="message"' not in viewer.get(page_of(row)).content.decode()
    settings.BROKER_URL = "amqp://nowhere"
    assert '<details class="sch-details sch-folded" id="message">' in viewer.get(page_of(row)).content.decode()


def test_an_execution_without_a_message_shows_none(viewer: Client) -> None:
    assert viewer.get(page_of(SchedulerExecutionFactory(skipped=True))).context["message"] is None
    unreadable = SchedulerExecutionFactory(failed=True, type="", scheduler=None, target_id=None)
    assert viewer.get(page_of(unreadable)).context["message"] is None


def test_secrets_are_hidden_in_message_and_difference(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = registry.Handler("worker", "tests.secret", noop, params=Secretive)
    monkeypatch.setitem(registry._handlers, ("worker", "tests.secret"), handler)
    scheduler = SchedulerFactory(worker=WorkerFactory(name="tests.secret"), params={"token": "hunter2"})
    row = SchedulerExecutionFactory(scheduler=scheduler, params={"token": "hunter3"})
    page = viewer.get(page_of(row))
    assert "hunter" not in page.content.decode()
    assert len(page.context["difference"]) == 1


# --- lineage and reruns -----------------------------------------------------------------------------


def test_a_rerun_and_its_source_link_to_each_other(operator: Client) -> None:
    scheduler = SchedulerFactory(worker=WorkerFactory(name="tests.typed"), params={"since_days": 1})
    row = SchedulerExecutionFactory(scheduler=scheduler, succeeded=True, params={"since_days": 30})
    other = SchedulerExecutionFactory(scheduler=scheduler, succeeded=True)
    for _turn in range(2):
        operator.post(page_of(row, "rerun"), dict(operator.get(page_of(row, "rerun")).context["c"].hidden))
    first, second = SchedulerExecution.objects.filter(trigger="manual").order_by("pk")
    assert (rerun_of(first.execution_key), lineage(first, EVERYTHING).source) == (row.pk, row.pk)
    assert lineage(first, EVERYTHING).source_exists
    assert lineage(row, EVERYTHING).reruns == [first.pk, second.pk]
    assert (
        lineage(other, EVERYTHING).earlier,
        lineage(other, EVERYTHING).later,
        lineage(other, EVERYTHING).reruns,
    ) == (row.pk, first.pk, [])
    assert f"execution {row.pk}</a>" in operator.get(page_of(first)).content.decode()
    page = operator.get(page_of(row)).content.decode()
    assert f"execution {first.pk}</a>, " in page
    row.delete()
    assert not lineage(first, EVERYTHING).source_exists
    assert f"{lineage(first, EVERYTHING).source}, which is deleted" in operator.get(page_of(first)).content.decode()


def test_keys_of_reruns() -> None:
    key = manual_key(uuid.UUID(int=1), 10**16 - 1)
    assert len(key) <= 64
    assert rerun_of(key) == 10**16 - 1
    for other in ("manual-" + "0" * 36, key + "x", key.replace("manual", "cron"), "", "manual-x-of-1", key + "9"):
        assert rerun_of(other) is None


def test_a_rerun_does_not_use_the_current_params_of_the_schedule(operator: Client) -> None:
    scheduler = SchedulerFactory(worker=WorkerFactory(name="tests.mark"), params={"seconds": 5})
    row = SchedulerExecutionFactory(scheduler=scheduler, succeeded=True, params={})
    operator.post(page_of(row, "rerun"), dict(operator.get(page_of(row, "rerun")).context["c"].hidden))
    assert SchedulerExecution.objects.exclude(pk=row.pk).get().params == {}


@pytest.fixture
def typed(db: None) -> SchedulerExecution:
    """An execution of a handler with a params model."""
    scheduler = SchedulerFactory(worker=WorkerFactory(name="tests.typed"), params={"since_days": 1})
    row: SchedulerExecution = SchedulerExecutionFactory(scheduler=scheduler, succeeded=True, params={"since_days": 30})
    return row


def test_edit_and_run_again(operator: Client, typed: SchedulerExecution) -> None:
    address = page_of(typed, "edit_rerun")
    page = operator.get(address).content.decode()
    assert "&quot;since_days&quot;: 30" in page
    refused = operator.post(address, {"params": '{"since_days": 999}', "post": "yes"})
    assert "at most 90" in refused.context["form"].params.errors["since_days"]
    asked = operator.post(address, {"params": '{"since_days": 60}'})
    assert [(edit.name, edit.old, edit.new) for edit in asked.context["c"].changes] == [("since_days", "30", "60")]
    assert SchedulerExecution.objects.count() == 1
    for _click in range(2):
        done = operator.post(address, dict(asked.context["c"].hidden), follow=True)
    made = SchedulerExecution.objects.exclude(pk=typed.pk).get()
    assert done.redirect_chain[-1][0] == page_of(made)
    assert (made.params, made.requested_by, made.scheduler_id) == ({"since_days": 60}, "operator", typed.scheduler_id)
    typed.scheduler.refresh_from_db()
    assert typed.scheduler.params == {"since_days": 1}
    assert [entry_line(entry) for entry in LogEntry.objects.order_by("id")] == [
        f"run again: execution {made.pk}; params.since_days: 30 -> 60",
        f"run now: execution {made.pk}, again as {typed.pk}; params.since_days: 30 -> 60",
    ]


def test_edit_and_run_again_says_when_nothing_changes(operator: Client, typed: SchedulerExecution) -> None:
    asked = operator.post(page_of(typed, "edit_rerun"), {"params": '{"since_days": 30}'})
    assert "Nothing is changed" in asked.content.decode()


def test_an_execution_without_schedule_cannot_be_edited_and_rerun(operator: Client) -> None:
    row = SchedulerExecutionFactory(scheduler=None, succeeded=True)
    assert "the schedule is deleted" in operator.get(page_of(row, "edit_rerun"), follow=True).content.decode()
    operator.post(page_of(row, "edit_rerun"), {"params": "{}", "post": "yes"})
    assert SchedulerExecution.objects.count() == 1


def test_edit_and_run_again_needs_the_permission(
    viewer: Client, no_rights: Client, typed: SchedulerExecution, operator: Client
) -> None:
    for client in (viewer, no_rights):
        for method in (client.get, client.post):
            assert method(page_of(typed, "edit_rerun")).status_code == 403
    assert "Edit and run again" not in viewer.get(page_of(typed)).content.decode()
    assert "Edit and run again" in operator.get(page_of(typed)).content.decode()
    missing = operator.get(page_of(typed, "edit_rerun").replace(str(typed.pk), "999999"), follow=True)
    assert "It may be deleted" in said(missing)[0]


def test_an_edit_keeps_hidden_secrets(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = registry.Handler("worker", "tests.secret", noop, params=Secretive)
    monkeypatch.setitem(registry._handlers, ("worker", "tests.secret"), handler)
    scheduler = SchedulerFactory(worker=WorkerFactory(name="tests.secret"), params={"token": "hunter2"})
    row = SchedulerExecutionFactory(scheduler=scheduler, succeeded=True, params={"token": "hunter3"})
    address = page_of(row, "edit_rerun")
    assert "hunter" not in operator.get(address).content.decode()
    asked = operator.post(address, {"params": '{"token": "••••••", "region": "us"}'})
    assert "hunter" not in asked.content.decode()
    operator.post(address, dict(asked.context["c"].hidden))
    made = SchedulerExecution.objects.exclude(pk=row.pk).get()
    assert made.params == {"token": "hunter3", "region": "us"}
    assert not any("hunter" in entry.change_message for entry in LogEntry.objects.all())


def test_a_secret_is_not_copied_to_the_schedules_new_target(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("tests.secret", "tests.other"):
        handler = registry.Handler("worker", name, noop, params=Secretive)
        monkeypatch.setitem(registry._handlers, ("worker", name), handler)
    scheduler = SchedulerFactory(worker=WorkerFactory(name="tests.secret"), params={"token": "hunter2"})
    row = SchedulerExecutionFactory(scheduler=scheduler, succeeded=True, params={"token": "hunter3"})
    scheduler.worker, scheduler.params = WorkerFactory(name="tests.other"), {"token": "its own"}
    scheduler.save()
    refused = operator.post(page_of(row, "edit_rerun"), {"params": '{"token": "••••••"}', "post": "yes"})
    assert "It was hidden, and is not known for this code" in refused.content.decode()
    assert SchedulerExecution.objects.count() == 1


def test_edit_and_run_again_by_fields(operator: Client, typed: SchedulerExecution) -> None:
    data = {"params.for": "worker/tests.typed", "params": "{}"}
    asked = operator.post(page_of(typed, "edit_rerun"), {**data, "params.field.since_days": "7"})
    assert [(edit.name, edit.old, edit.new) for edit in asked.context["c"].changes] == [("since_days", "30", "7")]
    both = {**data, "params.field.since_days": "7", "params": '{"since_days": 8}'}
    refused = operator.post(page_of(typed, "edit_rerun"), both)
    assert "Both the inputs and this text were edited." in refused.content.decode()
    operator.post(page_of(typed, "edit_rerun"), dict(asked.context["c"].hidden))
    assert SchedulerExecution.objects.exclude(pk=typed.pk).get().params == {"since_days": 7}


def test_the_cancel_page_says_that_a_running_execution_is_killed(operator: Client) -> None:
    running: Any = SchedulerExecutionFactory(running=True)
    assert "asked to stop (TERM), and killed after 5 s" in operator.get(page_of(running, "cancel")).content.decode()
    waiting: Any = SchedulerExecutionFactory()
    assert "killed" not in operator.get(page_of(waiting, "cancel")).content.decode()


def test_an_error_before_a_success_is_folded_unless_its_attempt_is_chosen(viewer: Client) -> None:
    row = SchedulerExecutionFactory(succeeded=True, attempt=2)
    AttemptFactory(execution=row, number=1, error_class="OSError", traceback="Traceback: it broke")
    address = reverse("admin:scheduling_schedulerexecution_change", args=[row.pk])

    def block(query: str = "") -> Any:
        return BeautifulSoup(viewer.get(address + query).content, "html.parser").find(id="error")

    folded = block()
    assert folded.name == "details"
    assert not folded.has_attr("open")
    assert "Error of attempt 1, before this success: OSError" in folded.summary.get_text()
    assert "Traceback: it broke" in folded.get_text()
    assert block("?attempt=1").name == "section"
    followed = viewer.get(reverse("admin:scheduling_schedulerexecution_follow", args=[row.pk]) + "?version=x").json()
    assert '<section class="module sch-module" id="error">' in followed["state"][0]


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ('{"rows": [1, "<b>"]}', '{\n  "rows": [\n    1,\n    "<b>"\n  ]\n}'),
        ("0", "0"),
        ("", ""),
        ("null", ""),
        ("{broken", ""),
    ],
)
def test_the_result_of_a_run(viewer: Client, stored: str, shown: str) -> None:
    row = SchedulerExecutionFactory(succeeded=True, attempt=2)
    AttemptFactory(execution=row, number=1, outcome="failed", result='"first"')
    AttemptFactory(execution=row, number=2, outcome="succeeded", result=stored)
    page = BeautifulSoup(viewer.get(page_of(row)).content, "html.parser")
    assert [block.get_text() for block in page.select("#result .sch-code")] == ([shown] if shown else [])


def test_a_run_of_code_says_who_asked_for_it(viewer: Client) -> None:
    row = SchedulerExecutionFactory(scheduler=None, trigger="code", requested_by="shop", execution_key="code-order-7")
    page = BeautifulSoup(viewer.get(page_of(row)).content, "html.parser")
    facts = page.select_one("#facts").get_text(" ", strip=True)
    assert "code (shop)" in facts
    assert "code-order-7" in facts
