"""Tests of the failed inbox: the list, and the actions "republish" and "discard" for selected or all matching rows."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from bs4 import BeautifulSoup
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.admin.inbox import actions
from scheduling.admin.inbox import admin as page_module
from scheduling.admin.inbox import filters as inbox_filters
from scheduling.broker import BrokerUnavailable, Counts
from scheduling.broker.database import DatabaseBroker
from scheduling.models import SchedulerExecution, newest
from scheduling.operations.batches import RequestLimits
from tests.admin.conftest import logged_in, said
from tests.admin.inbox import LIST, ask, confirm, fill, shown_rows, states
from tests.factories import (
    FailedExecutionFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
    WorkerFactory,
)
from tests.support import at_once

# --- the list ---------------------------------------------------------------------------------------


@time_machine.travel(clock.now(), tick=False)
def test_the_list_shows_only_failed_executions_with_their_errors(viewer: Client) -> None:
    row = FailedExecutionFactory(error_message="first <line>\nsecond line", scheduler__description="Invoices")
    for state in ("succeeded", "discarded", "cancelled", "running", "retrying"):
        SchedulerExecutionFactory(**{state: True})
    assert shown_rows(viewer) == {row.pk}
    page = viewer.get(LIST).content.decode()
    for text in ("ValueError", "first &lt;line&gt;", "Invoices", "tests.noop", "30 s ago", "1 failed execution waits"):
        assert text in page, text
    assert "second line" not in page
    assert reverse("admin:scheduling_schedulerexecution_change", args=[row.pk]) in page
    detail = viewer.get(reverse("admin:scheduling_failedexecution_change", args=[row.pk]))
    assert detail.headers["Location"] == reverse("admin:scheduling_schedulerexecution_change", args=[row.pk])


def test_a_search_reads_the_newest_rows_that_match_the_filters(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_module.FailedAdmin, "search_limit", 2)
    rows = [FailedExecutionFactory(error_message="no route", error_class=name) for name in ("A", "A", "B", "B", "B")]
    keys = [row.pk for row in rows]
    assert shown_rows(operator, "q=route") == set(keys[3:])
    assert shown_rows(operator, "q=route&error_class=A") == set(keys[:2])
    assert shown_rows(operator, f"q={keys[0]}") == {keys[0]}
    page = ask(operator, "republish_selected", rows[4:], f"{LIST}?q=route", across=True)
    assert said(confirm(operator, page, f"{LIST}?q=route")) == ["2 were republished."]
    # The search reads only the two newest rows of the inbox. The action has removed two rows from the inbox, so the
    # search now reads the next two rows.
    assert shown_rows(operator, "q=route") == set(keys[1:3])


def test_oldest_failure_of_a_large_inbox_is_an_estimate(
    viewer: Client, editor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newest, "SCANNED_FAILURES", 2)
    for days in (3, 5):
        FailedExecutionFactory(finished_at=clock.now() - timedelta(days=days))
    assert "The oldest failed 5 d ago." in viewer.get(LIST).content.decode()
    dashboard = reverse("admin:scheduling_dashboard_changelist")
    assert "The oldest: 5 d ago" in editor.get(dashboard).content.decode()
    FailedExecutionFactory(finished_at=clock.now() - timedelta(days=9))
    assert "The oldest failed 5 d ago or earlier." in viewer.get(LIST).content.decode()


def test_an_empty_inbox_says_so(viewer: Client) -> None:
    assert "Inbox empty." in viewer.get(LIST).content.decode()


def test_filters_and_search(viewer: Client) -> None:
    now = clock.now()
    a = FailedExecutionFactory(error_class="KeyError", error_message="Order 7 has no total")
    b = FailedExecutionFactory(
        scheduler=SchedulerFactory(worker=WorkerFactory(name="tests.fail")), finished_at=now - timedelta(days=3)
    )
    c = FailedExecutionFactory(scheduler=SchedulerFactory(of_report=True), finished_at=now - timedelta(days=40))
    for query, keys in {
        "": {a, b, c},
        "error_class=KeyError": {a},
        "target_name=tests.fail": {b},
        "type=report": {c},
        "age=1h": {a},
        "age=7d": {a, b},
        "age=old": {c},
        "q=NO TOTAL": {a, b, c},
        "q=order 7": {a},
        "q=tests.fai": {b},
        f"q={c.pk}": {c},
        f"q={a.fingerprint}": {a},
        "q=nothing like it": set(),
        "error_class=Unknown": set(),
        f"scheduler={b.scheduler_id}": {b},
        f"scheduler={b.scheduler_id}&type=report": set(),
        "scheduler=x": set(),
    }.items():
        assert shown_rows(viewer, query) == {row.pk for row in keys}, query
    page = viewer.get(LIST).content.decode()
    assert "KeyError (1)" in page
    assert "ValueError (2)" in page


def test_filter_counts_cover_only_the_newest_rows(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbox_filters.CommonValueFilter, "newest", 3)
    FailedExecutionFactory(error_class="KeyError")
    FailedExecutionFactory.create_batch(3, error_class="OSError")
    page = viewer.get(LIST).content.decode()
    assert "OSError (3+)" in page
    assert "KeyError (" not in page
    assert len(shown_rows(viewer, "error_class=KeyError")) == 1


def test_the_queries_do_not_grow_with_the_rows(operator: Client) -> None:
    def queries() -> list[str]:
        with CaptureQueriesContext(connection) as captured:
            assert operator.get(LIST).status_code == 200
        return [query["sql"] for query in captured.captured_queries]

    FailedExecutionFactory(scheduler__description="")
    few = queries()
    for _ in range(10):
        FailedExecutionFactory(scheduler__description="")
    assert len(queries()) == len(few) <= 18


# --- republish --------------------------------------------------------------------------------------


def test_republish_asks_for_confirmation_and_then_republishes(operator: Client) -> None:
    first, second, other = FailedExecutionFactory.create_batch(3)
    page = ask(operator, "republish_selected", [first, second])
    text = page.content.decode()
    assert "2 failed runs will be queued again; the retry count starts over." in text
    assert "tests.noop (worker)" in text
    assert "the invoice has no total" in text
    assert states(first, second, other) == ["failed"] * 3
    response = confirm(operator, page)
    assert said(response) == ["2 were republished."]
    assert states(first, second, other) == ["queued", "queued", "failed"]
    row = SchedulerExecution.objects.get(pk=first.pk)
    assert (row.retry_count, row.reason) == (0, "Republished by operator.")
    entries = LogEntry.objects.all()
    assert {entry.object_id for entry in entries} == {str(first.pk), str(second.pk)}
    assert {entry.change_message for entry in entries} == {"republish"}
    # The log entry belongs to the SchedulerExecution and not to the inbox's model. So the execution's history still
    # shows the entry after the execution has left the inbox.
    assert {entry.content_type for entry in entries} == {ContentType.objects.get_for_model(SchedulerExecution)}


def test_a_second_click_does_nothing(operator: Client) -> None:
    row = FailedExecutionFactory()
    page = ask(operator, "republish_selected", [row])
    confirm(operator, page)
    assert said(confirm(operator, page)) == ["0 were republished. Already handled: 1."]
    assert LogEntry.objects.count() == 1
    late = ask(operator, "republish_selected", [row])
    assert said(late) == ["All of the chosen runs were already handled by someone else."]


def test_rows_handled_by_another_user_are_counted(operator: Client) -> None:
    rows = FailedExecutionFactory.create_batch(3)
    page = ask(operator, "republish_selected", rows)
    SchedulerExecution.objects.filter(pk=rows[1].pk).update(state="discarded")
    assert said(confirm(operator, page)) == ["2 were republished. Already handled: 1."]
    assert states(*rows) == ["queued", "discarded", "queued"]


def test_republish_of_all_matching_rows_runs_the_filter_again(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RequestLimits, "seconds", 600.0)  # on a slow machine, too
    ids = fill(1_200, error_class="KeyError")
    others = FailedExecutionFactory.create_batch(
        2, scheduler=SchedulerFactory(worker=WorkerFactory(name="tests.fail")), error_class="OSError"
    )
    address = f"{LIST}?error_class=KeyError&q=invoice"
    shown = SchedulerExecution.objects.get(pk=ids[-1])
    page = ask(operator, "republish_selected", [shown], address, across=True)
    text = page.content.decode()
    assert "1200 failed runs will be queued again" in text
    assert "All failures of this selection" in text
    assert text.count("_selected_action") == 1
    assert len(page.content) < 30_000
    late = FailedExecutionFactory(error_class="KeyError", finished_at=clock.now() + timedelta(seconds=1))
    with CaptureQueriesContext(connection) as captured:
        response = confirm(operator, page, address, typed="1200")
    assert said(response) == ["1200 were republished."]
    assert not SchedulerExecution.objects.filter(pk__in=ids, state="failed").exists()
    assert states(*others, late) == ["failed"] * 3  # `late` failed after the confirmation page was shown
    assert LogEntry.objects.count() == 1_200
    selects = [query for query in captured.captured_queries if query["sql"].startswith("SELECT")]
    assert len(selects) < 65
    assert response.redirect_chain[-1][0] == address


def test_an_unreadable_message_stays_in_the_inbox(operator: Client) -> None:
    unreadable = SchedulerExecutionFactory(
        scheduler=None, failed=True, type="", target_name="", params={"body": "<b>no json</b>"}, trigger="message"
    )
    fine = FailedExecutionFactory()
    page = ask(operator, "republish_selected", [unreadable, fine])
    assert "messages that cannot be read" in page.content.decode()
    assert said(confirm(operator, page)) == [
        "1 was republished. Not possible: 1 with an unreadable message. Discard them."
    ]
    assert states(unreadable, fine) == ["failed", "queued"]
    detail = operator.get(reverse("admin:scheduling_schedulerexecution_change", args=[unreadable.pk]))
    assert "unreadable message" in detail.content.decode()
    assert "&lt;b&gt;no json" in detail.content.decode()


def test_the_execution_page_has_the_republish_button(operator: Client) -> None:
    row = FailedExecutionFactory()
    address = reverse("admin:scheduling_schedulerexecution_change", args=[row.pk])
    button = reverse("admin:scheduling_failedexecution_republish", args=[row.pk])
    assert f'href="{button}"' in operator.get(address).content.decode()
    response = operator.post(button, {"attempt": row.attempt}, follow=True)
    assert response.redirect_chain == [(address, 302)]
    assert states(row) == ["queued"]
    assert button not in response.content.decode()


def test_republish_can_be_spread_over_minutes(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RequestLimits, "chunk_rows", 2)
    rows, before = FailedExecutionFactory.create_batch(5), clock.now()
    page = ask(operator, "republish_selected", rows)
    for wrong in ("-1", "x", "1.5", "1441", "99999999"):
        again = confirm(operator, page, minutes=wrong)
        assert "Enter a whole number of minutes from 0 to 1440." in again.content.decode(), wrong
    assert states(*rows) == ["failed"] * 5
    assert said(confirm(operator, page, minutes="10")) == ["5 were republished."]
    wakes = list(SchedulerExecution.objects.filter(state="queued").order_by("pk").values_list("wake_at", flat=True))
    gaps = [(late - early).total_seconds() for early, late in itertools.pairwise(wakes)]
    assert gaps == [120.0] * 4
    assert 0 <= (wakes[0] - before).total_seconds() < 10
    assert {entry.change_message for entry in LogEntry.objects.all()} == {"republish, spread over 10 minutes"}
    detail = operator.get(reverse("admin:scheduling_schedulerexecution_change", args=[rows[-1].pk])).content.decode()
    assert "Waiting for its time" in detail


# --- discard ----------------------------------------------------------------------------------------


def test_discard_needs_a_reason(operator: Client) -> None:
    row = FailedExecutionFactory()
    page = ask(operator, "discard_selected", [row])
    for reason in ("", "   \n"):
        again = confirm(operator, page, reason=reason)
        assert "Enter a reason. Without a reason, nothing is discarded." in again.content.decode()
    assert states(row) == ["failed"]
    assert not LogEntry.objects.exists()
    response = confirm(operator, again, reason="known, <b>fixed</b> in release 7")
    assert said(response) == ["1 was discarded."]
    stored = SchedulerExecution.objects.get(pk=row.pk)
    assert (stored.state, stored.reason) == (
        "discarded",
        "Discarded by operator: known, <b>fixed</b> in release 7",
    )
    assert LogEntry.objects.get().change_message == "discard: known, <b>fixed</b> in release 7"
    history = operator.get(reverse("admin:scheduling_schedulerexecution_history", args=[row.pk])).content.decode()
    assert "&lt;b&gt;fixed" in history
    assert said(confirm(operator, again, reason="again")) == ["0 were discarded. Already handled: 1."]


def test_all_matching_rows_are_discarded(operator: Client) -> None:
    ids = fill(600, error_class="KeyError")
    page = ask(
        operator, "discard_selected", [SchedulerExecution(pk=ids[0])], f"{LIST}?error_class=KeyError", across=True
    )
    response = confirm(operator, page, f"{LIST}?error_class=KeyError", reason="noise", typed="600")
    assert said(response) == ["600 were discarded."]
    assert LogEntry.objects.count() == 600


# --- the typed number, and changes since the page was shown -----------------------------------------


@pytest.mark.parametrize("action", ["republish_selected", "discard_selected"])
def test_more_than_a_hundred_rows_need_their_number_typed(operator: Client, action: str) -> None:
    ids = fill(101)
    page = ask(operator, action, [SchedulerExecution(pk=ids[0])], across=True)
    assert "Type 101 to confirm" in page.content.decode()
    for typed in ("", "100", "yes", "101x", "\u0661\u0660\u0661"):
        again = confirm(operator, page, typed=typed, reason="noise", minutes="7")
        assert "Type 101 to confirm." in again.content.decode(), typed
        assert again.context["c"].form.errors["typed"] == ["Type 101 to confirm."]
    assert "noise" in again.content.decode() or 'value="7"' in again.content.decode()  # the form keeps its values
    assert not SchedulerExecution.objects.exclude(state="failed").exists()
    assert said(confirm(operator, again, typed=" 101 ", reason="noise"))[0].startswith("101 were ")


def test_every_error_is_linked_to_its_field(operator: Client) -> None:
    ids = fill(101)
    page = ask(operator, "republish_selected", [SchedulerExecution(pk=ids[0])], across=True)
    soup = BeautifulSoup(confirm(operator, page, typed="7", minutes="1441").content, "html.parser")
    assert [note.text for note in soup.find_all(class_="errornote")] == [
        "Enter a whole number of minutes from 0 to 1440.", "Type 101 to confirm.",
    ]  # fmt: skip
    for name in ("minutes", "typed"):
        field = soup.find(id=f"id_{name}")
        assert field["aria-invalid"] == "true"
        assert all(soup.find(id=key) for key in field["aria-describedby"].split())
        assert soup.find("label", attrs={"for": f"id_{name}"})
    assert not SchedulerExecution.objects.exclude(state="failed").exists()
    assert said(confirm(operator, page, typed="1 01"))[0].startswith("101 were ")


def test_a_long_reason_is_cut_and_a_reason_with_a_nul_is_refused(operator: Client) -> None:
    row = FailedExecutionFactory()
    page = ask(operator, "discard_selected", [row])
    again = confirm(operator, page, reason="why\x00")
    assert "Null characters are not allowed." in again.content.decode()
    assert states(row) == ["failed"]
    assert said(confirm(operator, again, reason="line\r\n" * 1_000)) == ["1 was discarded."]
    assert len(SchedulerExecution.objects.get(pk=row.pk).reason) <= 1_600


def test_equal_lines_of_the_confirmation_are_one_line_with_their_number(operator: Client) -> None:
    orders = SchedulerFactory(description="Import orders", timezone="UTC")
    instants = [datetime(2026, 3, 10, 7, 15, tzinfo=UTC)] * 9
    instants += [datetime(2026, 3, 10, 8, minute, tzinfo=UTC) for minute in (10, 20, 30)]
    rows = [FailedExecutionFactory(scheduler=orders, scheduled_at=instant) for instant in instants]
    page = BeautifulSoup(ask(operator, "republish_selected", rows).content, "html.parser")
    heading, lines = page.select_one("#sch-samples"), [line.text for line in page.select(".sch-samples li")]
    assert heading is not None
    assert heading.text == "Some of them, the newest first"
    assert lines[0].startswith("Import orders, 2026-03-10 08:30 UTC: ")
    assert lines[3].startswith("7 x Import orders, 2026-03-10 07:15 UTC: ")
    assert lines[4:] == ["and 2 more"]


def test_a_changed_filter_asks_again_and_keeps_the_typed_values(operator: Client) -> None:
    ids = fill(101)
    page = ask(operator, "republish_selected", [SchedulerExecution(pk=ids[0])], across=True)
    elsewhere = f"{LIST}?type=worker"
    again = confirm(operator, page, elsewhere, typed="101", minutes="30", canary="on")
    soup = BeautifulSoup(again.content, "html.parser")
    (note,) = soup.find_all(class_="errornote")
    assert note.text.startswith("The filter has changed since you saw the list.")
    assert soup.find(id="id_minutes")["value"] == "30"
    assert soup.find(id="id_canary").has_attr("checked")
    assert not soup.find(id="id_typed").get("value")


def test_a_hundred_rows_or_selected_rows_need_no_typed_number(operator: Client) -> None:
    ids = fill(100)
    page = ask(operator, "republish_selected", [SchedulerExecution(pk=ids[0])], across=True)
    assert 'name="typed"' not in page.content.decode()
    assert said(confirm(operator, page)) == ["100 were republished."]
    chosen = [SchedulerExecution(pk=pk) for pk in fill(101, error_class="OSError")]
    page = ask(operator, "republish_selected", chosen)
    assert 'name="typed"' not in page.content.decode()


def test_a_post_without_the_confirmation_page_changes_nothing(operator: Client) -> None:
    fill(101)
    data = {"action": "republish_selected", "_selected_action": "all", "select_across": "1", "post": "yes"}
    for more in ({}, {"count": "5"}, {"count": "x"}, {"count": "101"}, {"count": "101", "typed": "5"}):
        assert operator.post(LIST, {**data, **more}).status_code == 200
    assert not SchedulerExecution.objects.exclude(state="failed").exists()


def test_new_matching_rows_are_reported_and_confirmed_again(operator: Client) -> None:
    old, young = clock.now() - timedelta(days=40), clock.now() - timedelta(days=29)
    address = f"{LIST}?age=old"
    row, other = FailedExecutionFactory(finished_at=old), FailedExecutionFactory(finished_at=young)
    page = ask(operator, "republish_selected", [row], address, across=True)
    SchedulerExecution.objects.filter(pk=other.pk).update(finished_at=old)  # the filter now matches `other`
    again = confirm(operator, page, address)
    assert "2 match now; you saw 1. Please check again." in again.content.decode()
    assert states(row, other) == ["failed", "failed"]
    elsewhere = confirm(operator, again, LIST)
    assert "The filter has changed since you saw the list." in elsewhere.content.decode()
    assert states(row, other) == ["failed", "failed"]
    assert said(confirm(operator, again, address)) == ["2 were republished."]


@pytest.mark.django_db(transaction=True)
def test_two_simultaneous_clicks_republish_each_row_once() -> None:
    user = UserFactory(superuser=True)
    ids = fill(120)
    first = logged_in(user)
    page = ask(first, "republish_selected", [SchedulerExecution(pk=ids[0])], across=True)
    clients = [logged_in(user) for _ in range(2)]
    answers = at_once([lambda client=client: confirm(client, page, typed="120").content.decode() for client in clients])
    # The test reads the numbers from the HTML, because the test client mixes up the template contexts of two threads.
    assert sum(int(re.findall(r"(\d+) (?:was|were) republished", answer)[0]) for answer in answers) == 120
    assert LogEntry.objects.filter(change_message="republish").count() == 120
    assert set(SchedulerExecution.objects.values_list("state", "retry_base")) == {("queued", 4)}


# --- POST only --------------------------------------------------------------------------------------


def test_a_get_request_changes_nothing(operator: Client) -> None:
    row = FailedExecutionFactory()
    for action in ("republish_selected", "discard_selected"):
        operator.get(LIST, {"action": action, "_selected_action": row.pk, "post": "yes", "reason": "x"})
    assert states(row) == ["failed"]


# --- the broker -------------------------------------------------------------------------------------


class FailedQueueBroker(DatabaseBroker):
    """A broker whose failed queue holds `failed` messages. If `failed` is None, the broker is unreachable."""

    has_failed_queue = True

    def __init__(self, failed: int | None) -> None:
        self.failed = failed

    def counts(self, queues: Iterable[str] = ()) -> Counts:
        """Return the number of messages in the failed queue. Raise BrokerUnavailable if the broker is unreachable."""
        if self.failed is None:
            raise BrokerUnavailable("connection <refused>")
        return Counts(ready={}, failed=self.failed)


@pytest.mark.parametrize(
    ("failed", "sentence"),
    [(0, "failed queue holds 0 messages."), (None, "cannot be asked for its failed queue: connection &lt;refused&gt;")],
)
def test_the_page_shows_the_size_of_the_failed_queue_or_the_error(
    viewer: Client, monkeypatch: pytest.MonkeyPatch, failed: int | None, sentence: str
) -> None:
    @contextmanager
    def transport() -> Iterator[FailedQueueBroker]:
        yield FailedQueueBroker(failed)

    monkeypatch.setattr(page_module, "open_broker", transport)
    row = FailedExecutionFactory()
    response = viewer.get(LIST)
    assert sentence in response.content.decode()
    assert {listed.pk for listed in response.context["cl"].result_list} == {row.pk}


def test_nothing_changes_while_the_broker_is_unavailable(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Any:
        raise BrokerUnavailable("away")

    row = FailedExecutionFactory()
    page = ask(operator, "republish_selected", [row])
    monkeypatch.setattr(actions, "open_broker", refuse)
    assert said(confirm(operator, page)) == ["The broker cannot be used: away"]
    assert states(row) == ["failed"]
