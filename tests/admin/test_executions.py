"""Tests of the list of executions, which must work with millions of rows, and of the page of one execution."""

from __future__ import annotations

import re
import uuid
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from bs4 import BeautifulSoup
from django.contrib.admin.models import LogEntry
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone as clock
from pydantic import BaseModel, SecretStr

from scheduling import artefacts
from scheduling.admin.executions.output import tail
from scheduling.admin.ui.paginators import CappedPaginator
from scheduling.core.lifecycle import State
from scheduling.handlers import registry
from scheduling.models import Artefact, Attempt, Scheduler, SchedulerExecution
from scheduling.models.first_keys import first_keys
from tests.admin.audit import entry_line
from tests.admin.conftest import said
from tests.admin.pages import HOSTILE, page_of
from tests.admin.scheduler_form import form
from tests.apps.sample.workers import noop
from tests.factories import (
    AttemptFactory,
    OutputFactory,
    ProcessFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    WorkerFactory,
)

LIST = reverse("admin:scheduling_schedulerexecution_changelist")


class Secretive(BaseModel):
    """A params model with a secret."""

    token: SecretStr
    region: str = "eu"


def found(client: Client, query: str) -> set[int]:
    """Return the primary keys of the rows that the list shows."""
    response = client.get(f"{LIST}?{query}")
    assert response.status_code == 200, query
    return {row.pk for row in response.context["cl"].result_list}


# --- the list ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [state.value for state in State])
def test_each_state_is_shown_and_found(viewer: Client, state: str) -> None:
    row = SchedulerExecutionFactory() if state == "queued" else SchedulerExecutionFactory(**{state: True})
    SchedulerExecutionFactory(state="other")
    assert found(viewer, f"state={state}") == {row.pk}
    page = viewer.get(LIST).content.decode()
    assert row.execution_key in page
    assert state in page


def test_filters(viewer: Client) -> None:
    now = clock.now()
    old = SchedulerExecutionFactory(
        scheduled_at=now - timedelta(days=3), executed_at=now - timedelta(days=3), trigger="manual"
    )
    new = SchedulerExecutionFactory(scheduled_at=now - timedelta(minutes=3), executed_at=now - timedelta(minutes=3))
    report = SchedulerExecutionFactory(
        scheduler=SchedulerFactory(of_report=True), scheduled_at=now - timedelta(hours=3), executed_at=now
    )
    assert found(viewer, "within=1h") == {new.pk}
    assert found(viewer, "within=24h") == {new.pk, report.pk}
    assert found(viewer, "within=7d") == {old.pk, new.pk, report.pk}
    assert found(viewer, "within=nonsense") == {old.pk, new.pk, report.pk}
    assert found(viewer, "trigger=manual") == {old.pk}
    assert found(viewer, "type=report") == {report.pk}
    assert found(viewer, f"scheduler={new.scheduler.pk}") == {new.pk}
    for nonsense in ("abc", "-1", "9" * 40, "%00", "1 OR 1=1"):
        assert found(viewer, f"scheduler={nonsense}") == set()
    assert found(viewer, "state=failed") == set()


def test_filters_show_labels_and_the_selected_choice(viewer: Client) -> None:
    row = SchedulerExecutionFactory(trigger="manual")
    SchedulerExecutionFactory()
    page = BeautifulSoup(viewer.get(f"{LIST}?trigger=manual&within=1h").content, "html.parser")
    block = page.find("li", attrs={"data-filter": "trigger"})
    links = block.select(".sch-filter-panel a")
    assert [link.text.strip() for link in links] == ["All", "cron", "date", "by hand", "message", "code", "backfill"]
    assert [link.text for link in links if "aria-current" in link.attrs] == ["by hand"]
    assert block.find("summary").text == "Trigger: by hand"
    assert block.find("a", class_="sch-remove")["href"] == "?within=1h"
    assert block.find("a", class_="sch-remove")["aria-label"] == "Remove the filter Trigger: by hand"
    assert sorted(block.find("a", string="cron")["href"].lstrip("?").split("&")) == ["trigger=cron", "within=1h"]
    assert page.find("details", class_="sch-bar-button").text == "Filter (2)"
    assert page.find("a", class_="sch-clear")["href"] == "?"
    for query in ("state=nonsense", "type=nonsense", "trigger=nonsense", "trigger=by hand"):
        assert found(viewer, query) == set(), query
    assert found(viewer, "trigger__exact=manual") == {row.pk}


def test_first_keys_finds_the_first_row_since_an_instant(db: None) -> None:
    now = clock.now()
    assert first_keys([now]) == [0]
    rows = [SchedulerExecutionFactory(executed_at=now - timedelta(hours=20 - number)) for number in range(20)]
    for number in (3, 4, 11):
        SchedulerExecution.objects.filter(pk=rows[number].pk).delete()  # retention leaves gaps between primary keys
    for hours in (100, 20, 15.5, 9, 8.5, 1, 0.5):
        since = now - timedelta(hours=hours)
        [first] = first_keys([since])
        left_out = SchedulerExecution.objects.filter(pk__lt=first)
        assert not left_out.filter(executed_at__gte=since).exists()
        kept = SchedulerExecution.objects.filter(pk__gte=first).order_by("pk").first()
        assert kept is None or kept.executed_at >= since


def test_the_list_makes_few_queries_without_joins(viewer: Client) -> None:
    def queries() -> list[str]:
        with CaptureQueriesContext(connection) as captured:
            assert viewer.get(LIST).status_code == 200
        return [query["sql"].replace("`", '"') for query in captured.captured_queries]

    SchedulerExecutionFactory()
    few = queries()
    SchedulerExecutionFactory.create_batch(15, scheduler__description="")
    SchedulerExecutionFactory.create_batch(5, scheduler=SchedulerFactory(of_report=True, description=""), failed=True)
    many = queries()
    assert len(many) <= len(few) + 4  # more queries: the reports, the ends of attempts, and two for usual durations
    # One looks for a hold, one counts the failures for the sidebar, one the files, one asks whether a row has a group.
    assert len(many) <= 16
    executions = [sql for sql in many if 'FROM "scheduling_schedulerexecution"' in sql]
    assert executions
    for sql in executions:
        assert "JOIN" not in sql
        assert "error_message" not in sql
        assert "params" not in sql


def test_the_count_stops_at_its_cap(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CappedPaginator, "count_limit", 60)
    row = SchedulerExecutionFactory()
    SchedulerExecutionFactory.create_batch(60, scheduler=row.scheduler)
    page = viewer.get(LIST).content.decode()
    assert "more than 60 executions: narrow the filter" in page
    assert "p=2" in page
    assert viewer.get(f"{LIST}?p=2").status_code == 200
    assert viewer.get(f"{LIST}?p=7").status_code == 302  # the URL of a page beyond the cap redirects to the first page
    row.delete()
    assert "60 executions" in viewer.get(LIST).content.decode()


def test_executions_cannot_be_added_or_deleted(editor: Client) -> None:
    row = SchedulerExecutionFactory()
    page = editor.get(LIST).content.decode()
    assert "action-select" not in page
    assert 'addlink">' not in page.split("changelist-form")[1]
    response = editor.post(LIST, {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"})
    assert response.status_code in (200, 302)
    assert SchedulerExecution.objects.filter(pk=row.pk).exists()
    for name in ("add", "delete"):
        args = [] if name == "add" else [row.pk]
        assert editor.get(reverse(f"admin:scheduling_schedulerexecution_{name}", args=args)).status_code == 403


# --- the page ---------------------------------------------------------------------------------------


def test_the_page_shows_all_facts_of_a_failure(viewer: Client) -> None:
    row = SchedulerExecutionFactory(failed=True, params={"order": 4712}, trigger="manual", requested_by="maria")
    now = clock.now()
    AttemptFactory(
        execution=row, number=1, outcome="crashed", signal=9, exit_code=None, traceback="",
        finished_at=now, retry_at=now + timedelta(seconds=30),
    )  # fmt: skip
    AttemptFactory(execution=row, number=2, exit_code=3, traceback="Traceback <module>\nValueError: x", finished_at=now)
    OutputFactory(execution=row, attempt=1, text="2026-03-10T12:00:00.000Z INFO first\n")
    OutputFactory(execution=row, attempt=2, text="2026-03-10T12:00:01.000Z WARN second\nnot stamped\n")
    page = viewer.get(page_of(row)).content.decode()
    for text in (
        "Attempt 4 failed: ValueError: the invoice has no total. All 3 retries have been used.",
        "It stays in the failed inbox",
        "by hand (maria)",
        "signal SIGKILL",
        "exit code 3",
        "<td>30 s</td>",
        "Error of attempt 2",
        "Traceback &lt;module&gt;",
        "&quot;order&quot;: 4712",
        "host-0-producer",
        "sch-level-warn",
        "not stamped",
    ):
        assert text in page, text
    only = viewer.get(f"{page_of(row)}?attempt=1").content.decode()
    assert "first" in only
    assert "second" not in only
    assert "Error of attempt 1" in only
    assert viewer.get(f"{page_of(row)}?attempt=<b>").status_code == 200
    assert "No output." in viewer.get(f"{page_of(row)}?attempt=77").content.decode()


def test_the_running_attempt_stands_first(viewer: Client) -> None:
    row = SchedulerExecutionFactory(running=True, attempt=2, progress="3/10", consumer="box-7-ffff")
    AttemptFactory(execution=row, number=1, outcome="timed_out", error_class="TimedOut")
    response = viewer.get(page_of(row))
    first, second = response.context["attempts"]
    assert (first["number"], first["consumer"], first["pid"], first["error"]) == (2, "box-7-ffff", 4242, "3/10")
    assert (second["number"], "timed out" in second["chip"]) == (1, True)
    assert "on box-7-ffff, attempt 2." in response.content.decode()
    assert first["end"] == ""  # the lease matters only if it has ended
    SchedulerExecution.objects.filter(pk=row.pk).update(wake_at=clock.now() - timedelta(seconds=30))
    assert viewer.get(page_of(row)).context["attempts"][0]["end"].startswith("its lease ended 3")


def test_the_page_says_that_no_consumer_is_alive(viewer: Client) -> None:
    row = SchedulerExecutionFactory()
    page = viewer.get(page_of(row)).content.decode()
    assert "Waiting in the queue “main” for a free consumer since" in page
    assert "No consumer of the queue “main” is alive: start one with manage.py run_worker." in page
    ProcessFactory(silent=True)
    ProcessFactory(stopped=True)
    ProcessFactory(producer=True)
    ProcessFactory(info={"queue": "standalone"})
    assert "No consumer of the queue" in viewer.get(page_of(row)).content.decode()
    ProcessFactory()
    assert "No consumer of the queue" not in viewer.get(page_of(row)).content.decode()
    alone = SchedulerExecutionFactory(queue="standalone")
    Process = ProcessFactory._meta.model
    Process.objects.filter(info__queue="standalone").delete()
    assert "run_worker --standalone" in viewer.get(page_of(alone)).content.decode()


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"claimed": True}, "Claimed by host-0-producer. It waits for the broker to confirm it."),
        (
            {"retrying": True},
            "Attempt 1 failed: ConnectionError: no route to host. Retry 1 of 3 follows. The next attempt is due in ",
        ),
        (
            {"failed": True, "attempt": 0},
            '"sch-lead">ValueError: the invoice has no total. All 3 retries have been used.',
        ),
        (
            {"skipped": True, "missed": 5, "reason": "Paused by anna. 5 occurrences did not run."},
            "Paused by anna. 5 occurrences did not run. This execution stands for all 5 of them.",
        ),
        ({"failed": True, "error_class": "", "error_message": ""}, "Attempt 4 failed. All 3 retries"),
        (
            {"claimed": True, "wake_at": "future", "reason": "Republished by ada."},
            "Waiting for its time: due in ",
        ),
        ({"succeeded": True}, "Attempt 1 succeeded in 10 s."),
        ({"skipped": True}, "Missed 3 occurrences: no producer was running."),
        ({"cancelled": True}, "Cancelled by another user."),
        ({"discarded": True}, "Discarded by another user: it is known."),
        ({"skipped": True, "reason": ""}, "No reason was recorded."),
        ({"running": True, "cancel_requested_by": "maria"}, "maria is cancelling it."),
        ({"running": True, "wake_at": "past"}, "lost contact in attempt 1. A producer will end the attempt."),
    ],
)
@time_machine.travel(clock.now(), tick=False)
def test_the_page_explains_the_state(viewer: Client, columns: dict[str, Any], sentence: str) -> None:
    if columns.get("wake_at") == "past":
        columns = {**columns, "wake_at": clock.now() - timedelta(seconds=100)}
    if columns.get("wake_at") == "future":
        columns = {**columns, "wake_at": clock.now() + timedelta(minutes=5)}
    assert sentence in viewer.get(page_of(SchedulerExecutionFactory(**columns))).content.decode()


def test_hostile_text_is_escaped_on_every_page(editor: Client) -> None:
    row = SchedulerExecutionFactory(
        failed=True, target_name=HOSTILE, requested_by=HOSTILE, container_id=HOSTILE[:60], consumer=HOSTILE[:60],
        error_class=HOSTILE, error_message=HOSTILE * 20, reason=HOSTILE, execution_key=HOSTILE[:64],
        params={HOSTILE: [HOSTILE]}, scheduler__description=HOSTILE,
    )  # fmt: skip
    AttemptFactory(
        execution=row, consumer=HOSTILE, error_class=HOSTILE, error_message=HOSTILE, traceback=HOSTILE, outcome="<b>"
    )
    OutputFactory(execution=row, attempt=1, text=f"{HOSTILE}\n2026-03-10T12:00:00.000Z INFO {HOSTILE}\n")
    running = SchedulerExecutionFactory(running=True, scheduler=row.scheduler, progress=HOSTILE[:60])
    for address in (
        LIST,
        page_of(row),
        page_of(running),
        page_of(row, "rerun"),
        page_of(running, "cancel"),
        reverse("admin:scheduling_failedexecution_changelist"),
        reverse("admin:scheduling_scheduler_changelist"),
        reverse("admin:scheduling_scheduler_change", args=[row.scheduler.pk]),
        reverse("admin:scheduling_scheduler_run", args=[row.scheduler.pk]),
        reverse("admin:scheduling_scheduler_history", args=[row.scheduler.pk]),
    ):
        response = editor.get(address)
        assert response.status_code == 200, address
        page = response.content.decode()
        assert "<script>alert" not in page, address
        assert "<img src=x" not in page, address
        # HTML escaping does not change the characters \x1b and \u202e, so this project's pages show their codes. But
        # Django writes the row's name unchanged into the label of a checkbox. The test removes these labels.
        body = re.sub(r'aria-label="[^"]*"', "", page.split('id="content-main"')[1])
        if "/scheduler/" not in address or address.endswith("/run/"):
            assert "\x1b" not in body, address
            assert "\u202e" not in body, address


def test_long_texts_are_cut(viewer: Client) -> None:
    row = SchedulerExecutionFactory(failed=True, params={"a": "x" * 900_000}, error_message="y" * 900_000)
    AttemptFactory(execution=row, traceback="z" * 900_000, error_message="y" * 900_000)
    OutputFactory(execution=row, attempt=1, text="o" * 1_000_000 + "\n")
    page = viewer.get(page_of(row))
    assert page.status_code == 200
    assert len(page.content) < 400_000


def test_the_page_links_to_the_files_of_a_run(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artefacts, "_providers", [lambda pk: [("<b>.csv", f"/files/{pk}")]])
    row = SchedulerExecutionFactory(succeeded=True)
    page = viewer.get(page_of(row)).content.decode()
    assert f'<a href="/files/{row.pk}">&lt;b&gt;.csv</a>' in page


def test_the_list_says_how_many_files_a_run_made(viewer: Client) -> None:
    without, one, two = SchedulerExecutionFactory.create_batch(3, succeeded=True)
    for row, name in ((one, "a.csv"), (two, "a.csv"), (two, "b.csv")):
        Artefact.objects.create(execution=row, attempt=1, filename=name, content_type="text/csv", file=name)
    page = BeautifulSoup(viewer.get(LIST).content, "html.parser")
    links = [(str(link["href"]), link.text) for link in page.select("#result_list a[href$='#files']")]
    assert links == [(f"{page_of(two)}#files", "2 files"), (f"{page_of(one)}#files", "1 file")]
    assert "#files" not in viewer.get(f"{LIST}?q={without.pk}").content.decode()


def test_secret_parameters_are_hidden_from_viewers_and_editors(
    viewer: Client, editor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = registry.Handler("worker", "tests.secret", noop, params=Secretive)
    monkeypatch.setitem(registry._handlers, ("worker", "tests.secret"), handler)
    worker = WorkerFactory(name="tests.secret", params={"token": "hunter2", "region": "eu"})
    row = SchedulerExecutionFactory(
        scheduler=SchedulerFactory(worker=worker, params={"token": "hunter2"}), params={"token": "hunter2"}
    )
    scheduler = reverse("admin:scheduling_scheduler_change", args=[row.scheduler.pk])
    assert "hunter2" not in editor.get(page_of(row, "rerun")).content.decode()
    for address in (page_of(row), scheduler, reverse("admin:scheduling_worker_change", args=[worker.pk])):
        page = viewer.get(address).content.decode()
        assert "hunter2" not in page, address
        assert "••••••" in page, address
    # An editor can replace the secret, but cannot see the old value.
    assert "hunter2" not in editor.get(scheduler).content.decode()
    editor.post(scheduler, {**form(worker=worker.pk), "params": '{"token": "hunter3"}'})
    row.scheduler.refresh_from_db()
    assert row.scheduler.params == {"token": "hunter3"}
    assert "hunter" not in LogEntry.objects.latest("id").change_message


def test_the_page_accepts_no_post_and_unknown_keys_give_a_message(editor: Client) -> None:
    row = SchedulerExecutionFactory()
    assert editor.post(page_of(row), {"state": "succeeded"}).status_code == 405
    row.refresh_from_db()
    assert row.state == "queued"
    for name in ("change", "cancel", "rerun", "output"):
        for key in ("999999", "abc", "9" * 30):
            address = reverse(f"admin:scheduling_schedulerexecution_{name}", args=[key])
            assert "It may be deleted" in said(editor.get(address, follow=True))[0]


def test_the_page_makes_a_limited_number_of_queries(viewer: Client, django_assert_max_num_queries: Any) -> None:
    row = SchedulerExecutionFactory(failed=True)
    for number in range(1, 15):
        AttemptFactory(execution=row, number=number)
        OutputFactory(execution=row, attempt=number)
    with django_assert_max_num_queries(25):
        viewer.get(page_of(row))


# --- output -----------------------------------------------------------------------------------------


def test_the_page_shows_the_last_lines_and_the_download_has_all_lines(viewer: Client) -> None:
    row = SchedulerExecutionFactory(succeeded=True)
    for chunk in range(5):
        lines = "".join(f"2026-03-10T12:00:00.000Z OUT line {chunk * 600 + n}.\n" for n in range(600))
        OutputFactory(execution=row, attempt=1, sequence=chunk, text=lines)
    page = viewer.get(page_of(row)).content.decode()
    assert "Only the last 2000 lines are shown." in page
    assert "line 999." not in page
    assert "line 1000." in page
    assert "line 2999." in page
    assert page.index("line 1000.") < page.index("line 2999.")
    response = viewer.get(page_of(row, "output"))
    text = b"".join(response.streaming_content).decode()  # type: ignore[attr-defined]
    assert response["Content-Type"] == "text/plain; charset=utf-8"
    assert response["Content-Disposition"] == f'attachment; filename="execution-{row.pk}.txt"'
    assert response["X-Content-Type-Options"] == "nosniff"
    assert text.startswith("--- attempt 1 ---\n2026-03-10T12:00:00.000Z OUT line 0.\n")
    assert text.count("\n") == 3001


def test_the_download_of_one_attempt(viewer: Client) -> None:
    row = SchedulerExecutionFactory(succeeded=True)
    OutputFactory(execution=row, attempt=1, text="one\n")
    OutputFactory(execution=row, attempt=2, text="two 😀\n")
    response = viewer.get(page_of(row, "output") + "?attempt=1")
    assert b"".join(response.streaming_content) == b"--- attempt 1 ---\none\n"  # type: ignore[attr-defined]
    assert f"execution-{row.pk}-1.txt" in response["Content-Disposition"]


def test_only_a_newline_ends_a_line_of_output(db: None) -> None:
    row = SchedulerExecutionFactory(succeeded=True)
    OutputFactory(execution=row, attempt=1, text="2026-03-10T12:00:00.000Z INFO a\x0cb\u2028c\rd\n")
    found = tail(row.pk)
    assert found.lines == 1
    assert "a\\x0cb\\u2028c\\rd" in found.groups[0][1]


# --- cancel -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "state", "word"),
    [
        ({}, "cancelled", "Cancelled. It will not run."),
        ({"retrying": True}, "cancelled", "Cancelled. It will not run."),
        ({"running": True}, "running", "Cancelling. It is killed if it does not stop in 5 s."),
        ({"succeeded": True}, "succeeded", "It had already ended"),
    ],
)
def test_cancel(operator: Client, columns: dict[str, Any], state: str, word: str) -> None:
    row = SchedulerExecutionFactory(**columns)
    page = operator.get(page_of(row, "cancel")).content.decode()
    assert ("There is nothing to cancel" in page) == (state == "succeeded")
    row.refresh_from_db()
    assert (row.state, row.cancel_requested_by) == (next(iter(columns), "queued"), "")
    response = operator.post(page_of(row, "cancel"), follow=True)
    assert word in said(response)[0]
    assert response.redirect_chain[-1][0] == page_of(row)
    row.refresh_from_db()
    assert row.state == state
    assert row.cancel_requested_by == ("operator" if state == "running" else "")
    assert LogEntry.objects.count() == (0 if state == "succeeded" else 1)


# --- run again --------------------------------------------------------------------------------------


def test_run_again_uses_the_params_of_the_execution(operator: Client) -> None:
    scheduler = SchedulerFactory(worker=WorkerFactory(name="tests.typed"), params={"since_days": 1})
    row = SchedulerExecutionFactory(scheduler=scheduler, succeeded=True, params={"since_days": 30})
    page = operator.get(page_of(row, "rerun"))
    assert "&quot;since_days&quot;: 30" in page.content.decode()
    key = dict(page.context["c"].hidden)
    for _ in range(2):
        response = operator.post(page_of(row, "rerun"), key, follow=True)
    made = SchedulerExecution.objects.exclude(pk=row.pk).get()
    assert response.redirect_chain[-1][0] == page_of(made)
    assert (made.params, made.trigger, made.requested_by) == ({"since_days": 30}, "manual", "operator")
    messages = [entry_line(entry) for entry in LogEntry.objects.order_by("id")]
    assert messages == [f"run again: execution {made.pk}", f"run now: execution {made.pk}, again as {row.pk}"]


def test_run_again_is_refused_without_schedule_or_with_invalid_params(operator: Client) -> None:
    gone = SchedulerExecutionFactory(scheduler=None, succeeded=True)
    assert "the schedule is deleted" in operator.get(page_of(gone, "rerun")).content.decode()
    assert "/rerun/" not in operator.get(page_of(gone)).content.decode()
    scheduler = SchedulerFactory(worker=WorkerFactory(name="tests.typed"))
    wrong = SchedulerExecutionFactory(scheduler=scheduler, succeeded=True, params={"since_days": 999})
    assert "no longer fit the code: since_days: " in operator.get(page_of(wrong, "rerun")).content.decode()
    for row in (gone, wrong):
        operator.post(page_of(row, "rerun"), {"key": str(uuid.uuid4())})
    assert SchedulerExecution.objects.count() == 2


def test_run_again_says_that_the_schedule_has_another_target(operator: Client) -> None:
    row = SchedulerExecutionFactory(succeeded=True)
    Scheduler.objects.filter(pk=row.scheduler.pk).update(worker=WorkerFactory(name="tests.fail"))
    assert "now has another target: tests.fail" in operator.get(page_of(row, "rerun")).content.decode()


def test_an_attempt_with_an_unknown_outcome_is_shown(viewer: Client) -> None:
    attempt = AttemptFactory(signal=99, exit_code=None)
    Attempt.objects.filter(pk=attempt.pk).update(outcome="melted")
    page = viewer.get(page_of(attempt.execution)).content.decode()
    assert "melted" in page
    assert "signal 99" in page
