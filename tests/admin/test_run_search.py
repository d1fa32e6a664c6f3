"""The search of executions and of failures finds what stands on the screen, and takes qualifiers."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from bs4 import BeautifulSoup
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from scheduling.admin.executions.admin import ExecutionAdmin
from scheduling.admin.inbox.admin import FailedAdmin
from scheduling.models import SchedulerExecution
from scheduling.operations import names
from tests.admin.conftest import said
from tests.admin.inbox import ask, confirm
from tests.factories import (
    FailedExecutionFactory,
    ReminderFactory,
    ReportFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    WorkerFactory,
)

EXECUTIONS = reverse("admin:scheduling_schedulerexecution_changelist")
INBOX = reverse("admin:scheduling_failedexecution_changelist")
BOTH = pytest.mark.parametrize("address", [EXECUTIONS, INBOX])


def search(client: Client, address: str, text: str, more: str = "") -> Any:
    """Return the list after a search. Redirects to filters are followed."""
    response = client.get(f"{address}?q={quote(text)}{more}", follow=True)
    assert response.status_code == 200, text
    return response


def found(client: Client, address: str, text: str, more: str = "") -> set[int]:
    """Return the primary keys of the rows that a search finds."""
    return {row.pk for row in search(client, address, text, more).context["cl"].result_list}


def notes(response: Any) -> list[str]:
    """Return the sentences about the search above the list."""
    return [note.text for note in BeautifulSoup(response.content, "html.parser").select("p.sch-note[role=status]")]


@BOTH
def test_what_a_row_shows_is_found(viewer: Client, address: str) -> None:
    orders = SchedulerFactory(
        description="Import orders DE", worker=WorkerFactory(name="shop.import_orders", title="Import orders")
    )
    row = FailedExecutionFactory(
        scheduler=orders, target_name="shop.import_orders", target_id=orders.worker_id, execution_key="cron-2031-5-6-7",
        error_class="shop.PaymentGatewayTimeout", error_message="no answer after 30 s",
    )  # fmt: skip
    FailedExecutionFactory(error_class="KeyError", error_message="total")
    for text in (
        "Import orders DE", "import ORDERS", "shop.import_orders", "orders", "PaymentGateway", "no answer",
        "PaymentGatewayTimeout: no answer", str(row.pk), "cron-2031-5", row.fingerprint, row.fingerprint.upper(),
        "schedule:orders", 'schedule:"Import orders DE"', 'target:"Import orders"', "target:shop.", "error:Gateway",
        'error:"no answer"', f"id:{row.pk}", "key:cron-2031", f"schedule:{orders.pk}", "orders error:timeout",
        'answer schedule:"orders DE" type:worker',
    ):  # fmt: skip
        assert found(viewer, address, text) == {row.pk}, text
    for text in ("9" * 30, "'; DROP TABLE", "%", "schedule:nothing", "orders error:KeyError", '"schedule:orders"'):
        assert found(viewer, address, text) == set(), text
    assert len(found(viewer, address, " ")) == 2


@BOTH
def test_every_kind_of_target_is_found_by_its_name(viewer: Client, address: str) -> None:
    report = ReportFactory(title="Monthly sales")
    reminder = ReminderFactory(name="Water the plants")
    of_report = SchedulerFactory(description="x", worker=None, report=report)
    of_reminder = SchedulerFactory(description="y", worker=None, reminder=reminder)
    first = FailedExecutionFactory(scheduler=of_report, type="report", target_id=report.pk, target_name="reports.z")
    second = FailedExecutionFactory(scheduler=of_reminder, type="reminder", target_id=reminder.pk, target_name="send")
    # A run without a schedule is found by its target, too.
    alone = FailedExecutionFactory(scheduler=None, type="report", target_id=report.pk, target_name="reports.z")
    assert found(viewer, address, "target:monthly") == {first.pk, alone.pk}
    assert found(viewer, address, "sales") == {first.pk, alone.pk}
    assert found(viewer, address, "water the") == {second.pk}


def test_qualifiers_of_filters_become_filters(viewer: Client) -> None:
    old, failed = SchedulerExecutionFactory(trigger="manual"), SchedulerExecutionFactory(failed=True)
    for text, query in (
        ("state:failed", "?state=failed"),
        ("STATE:Failed ValueError", "?q=ValueError&state=failed"),
        ('trigger:"by hand"', "?trigger=manual"),
        ("type:worker age:24h", "?type=worker&within=24h"),
        (f"schedule:{old.scheduler_id} error:x", f"?q=error%3Ax&scheduler={old.scheduler_id}"),
        ('state:failed "state:x"', "?q=state%3Ax&state=failed"),
    ):
        response = viewer.get(f"{EXECUTIONS}?q={quote(text)}&p=3")
        assert response.status_code == 302, text
        chosen = sorted(response.headers["Location"].removeprefix(EXECUTIONS).removeprefix("?").split("&"))
        if '"state:x"' not in text:
            assert "?" + "&".join(chosen) == query, text
    page = search(viewer, EXECUTIONS, "state:failed")
    assert {row.pk for row in page.context["cl"].result_list} == {failed.pk}
    assert "State: failed" in BeautifulSoup(page.content, "html.parser").find("ul", class_="sch-filters").text
    assert found(viewer, EXECUTIONS, 'state:failed "state:x"') == set()
    assert viewer.get(f"{INBOX}?q=age%3Aold").headers["Location"] == f"{INBOX}?age=old"


def test_a_qualifier_that_cannot_be_used_is_said(viewer: Client) -> None:
    FailedExecutionFactory(error_message="colour:red is no colour")
    page = search(viewer, EXECUTIONS, "colour:red")
    assert page.context["cl"].result_count == 0
    assert notes(page) == [
        "“colour:red”: no filter has this name. There are id:, schedule:, error:, target:, key:, param:, state:, age:, "
        "type:, trigger:, duration:. To search for the text, quote it."
    ]
    assert len(found(viewer, EXECUTIONS, '"colour:red"')) == 1
    page = search(viewer, EXECUTIONS, "state:fialed ValueError")
    assert page.context["cl"].result_count == 0
    (note,) = notes(page)
    assert note.startswith("“state:fialed”: state is one of these: blocked, claimed, queued, running,")
    assert notes(search(viewer, EXECUTIONS, "id:x1")) == ["“id:x1”: an id is a whole number."]
    assert notes(search(viewer, EXECUTIONS, "state:failed state:running")) == [
        "“state:failed”: a search can have one state only.",
        "“state:running”: a search can have one state only.",
    ]
    # All rows of the inbox failed, so it has no filter by state.
    assert "“state:failed”: no filter has this name." in notes(search(viewer, INBOX, "state:failed"))[0]
    assert notes(search(viewer, EXECUTIONS, "<script>:1 x:<b>"))[0].startswith("“x:<b>”")


def test_no_action_applies_to_more_rows_than_the_search_names(operator: Client) -> None:
    row = FailedExecutionFactory()
    # The address is typed by hand. The list itself would have redirected to the filter.
    page = ask(operator, "republish_selected", [row], f"{INBOX}?q=type%3Areport", across=True)
    assert SchedulerExecution.objects.get(pk=row.pk).state == "failed"
    assert said(page) == ["All of the chosen runs were already handled by someone else."]
    page = ask(operator, "republish_selected", [row], f"{INBOX}?q=error%3AValue", across=True)
    assert said(confirm(operator, page, f"{INBOX}?q=error%3AValue")) == ["1 was republished."]


def test_a_search_reads_the_newest_rows_or_one_schedules_rows(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search by key, name or error uses no index, so it reads only the newest rows or the rows of one schedule."""
    old, *_, new = SchedulerExecutionFactory.create_batch(
        4, execution_key="cron-2026-3-10-8-0", target_name="sync", scheduler__description="Nightly"
    )
    monkeypatch.setattr(ExecutionAdmin, "search_limit", 2)
    limit = "Only the newest 2 executions were searched. Choose a schedule to search all of its own."
    for text in ("cron-2026", "sync", "Nightly", "target:sync"):
        page = search(viewer, EXECUTIONS, text)
        shown = {row.pk for row in page.context["cl"].result_list}
        assert new.pk in shown
        assert old.pk not in shown
        assert notes(page) == [limit]
        page = search(viewer, EXECUTIONS, text, f"&scheduler={old.scheduler.pk}")
        assert {row.pk for row in page.context["cl"].result_list} == {old.pk}
        assert notes(page) == []
    assert found(viewer, EXECUTIONS, f"{old.pk}") == found(viewer, EXECUTIONS, f"id:{old.pk}") == {old.pk}
    assert old.pk in found(viewer, EXECUTIONS, "schedule:Nightly")
    assert notes(viewer.get(EXECUTIONS)) == []
    monkeypatch.setattr(ExecutionAdmin, "search_limit", 100)
    assert notes(search(viewer, EXECUTIONS, "sync")) == []


def test_a_search_of_the_inbox_says_when_it_is_limited(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = FailedExecutionFactory.create_batch(3, error_message="no route 77")
    monkeypatch.setattr(FailedAdmin, "search_limit", 2)
    page = search(viewer, INBOX, "route")
    assert {row.pk for row in page.context["cl"].result_list} == {row.pk for row in rows[1:]}
    assert notes(page) == ["Only the newest 2 failures were searched. Choose a filter to search older ones."]
    assert found(viewer, INBOX, str(rows[0].pk)) >= {rows[0].pk}
    assert found(viewer, INBOX, "77") == {row.pk for row in rows[1:]}
    monkeypatch.setattr(FailedAdmin, "search_limit", 3)
    assert notes(search(viewer, INBOX, "route")) == []


@BOTH
def test_a_search_takes_few_queries(viewer: Client, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "MOST", 3)
    FailedExecutionFactory.create_batch(5, scheduler__description="Nightly")
    viewer.get(address)
    with CaptureQueriesContext(connection) as captured:
        viewer.get(f"{address}?q=nightly")
    assert len(captured) <= 23
    page = search(viewer, address, "Nightly")
    assert page.context["cl"].result_count == 3
    assert notes(page) == ["Many schedules have “Nightly” in their name. Only the newest 3 of them were searched."]


@BOTH
def test_a_search_says_when_a_name_has_too_many_targets(
    viewer: Client, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        FailedExecutionFactory(target_name=f"old.{place}", target_id=worker.pk, scheduler=None)
        for place, worker in enumerate(WorkerFactory(name=f"shop.{letter}", title="Import orders") for letter in "abc")
    ]
    monkeypatch.setattr(names, "MOST", 2)
    said = "Many targets have “{}” in their name. Only the newest 2 of each type were searched."
    for text, name in (("orders", "orders"), ("target:orders", "orders")):
        page = search(viewer, address, text)
        assert {row.pk for row in page.context["cl"].result_list} == {row.pk for row in rows[1:]}
        assert notes(page) == [said.format(name)]
    monkeypatch.setattr(names, "MOST", 3)
    assert notes(search(viewer, address, "orders")) == []


def test_the_search_box_says_what_it_searches(viewer: Client) -> None:
    page = BeautifulSoup(viewer.get(f"{EXECUTIONS}?q=a&state=failed").content, "html.parser")
    box = page.find("input", id="searchbar")
    assert (box["placeholder"], box["value"]) == ("Search error, target, schedule, id", "a")
    form = page.find("form", id="changelist-search")
    assert [(each["name"], each["value"]) for each in form.select("input[type=hidden]")] == [("state", "failed")]


PARAMS = {
    "region": "eu", "days": 3, "share": 1.5, "dry": True, "until": None, "contains": "x", "a__b": "y", "größe": "groß",
    "delivery": {"format": "xlsx", "to": ["a"]}, "digits": "3", "spaced": "two words",
}  # fmt: skip


@BOTH
@pytest.mark.parametrize(
    "text",
    ["region=eu", "days=3", "share=1.5", "dry=true", "until=null", "contains=x", "a__b=y", "größe=groß", "digits=3",
     "delivery.format=xlsx"],
)  # fmt: skip
def test_a_parameter_is_found_by_its_value(viewer: Client, address: str, text: str) -> None:
    row = FailedExecutionFactory(params=PARAMS)
    FailedExecutionFactory(params={})
    FailedExecutionFactory(params={"region": "us", "days": 30, "delivery": "xlsx"})
    assert found(viewer, address, f"param:{text}") == {row.pk}
    assert found(viewer, address, 'param:"spaced=two words"') == {row.pk}
    assert found(viewer, address, "param:region=e") == set()
    assert found(viewer, address, f"param:{text} param:region=eu type:worker") == {row.pk}


@BOTH
@pytest.mark.parametrize("text", ["region", "=eu", "a..b=c", "a.b.c.d.e.f=1"])
def test_a_parameter_without_a_name_or_a_value_is_said(viewer: Client, address: str, text: str) -> None:
    page = search(viewer, address, f"param:{text}")
    assert any("write a name and a value, such as param:region=eu." in note for note in notes(page))


@BOTH
@pytest.mark.parametrize(
    "text",
    ["x=" + "9" * 400, "x=1e999", "x=" + "[" * 3_000, "x=\x00", "'\"=1", "$[0]=1", "x='; DROP TABLE x"],
)  # fmt: skip
def test_no_parameter_breaks_the_search(viewer: Client, address: str, text: str) -> None:
    FailedExecutionFactory(params={"x": 1})
    assert viewer.get(address, {"q": f"param:{text}"}, follow=True).status_code in (200, 400)


@BOTH
def test_a_secret_cannot_be_guessed_by_a_search(viewer: Client, address: str) -> None:
    secret = {"token": "hunter2", "days": 3}
    own = FailedExecutionFactory(scheduler=SchedulerFactory(handler="tests.keep", params=secret), params=secret)
    other = FailedExecutionFactory(params={"token": "hunter2"})  # no secret of this code
    assert found(viewer, address, "param:token=hunter2") == {other.pk}
    assert found(viewer, address, "param:days=3") == {own.pk}
