"""Tests of replays with a canary: the start from the failed inbox, the pages, and the permission to stop a replay."""

from __future__ import annotations

import re
from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.admin.replays.rows import STATES
from scheduling.broker.database import DatabaseBroker
from scheduling.core.outcome import Failed, Succeeded
from scheduling.core.retry import RetryPolicy
from scheduling.models import FailedExecution, Replay, ReplayChunk, SchedulerExecution
from scheduling.operations.batches import RequestLimits
from scheduling.producer.sweeps import sweep
from tests.admin.conftest import logged_in, said
from tests.admin.inbox import LIST, ask, confirm, fill, states
from tests.contract.desk import Desk
from tests.factories import AttemptFactory, FailedExecutionFactory, SchedulerFactory, UserFactory
from tests.support import at_once

BROKER = DatabaseBroker()
NEVER = RetryPolicy(max_retries=0)


def begin(client: Client, rows: list[Any], address: str = LIST, across: bool = False, **more: Any) -> Any:
    """Start a replay with a canary. Post the data that the list and then the confirmation page would post."""
    page = ask(client, "republish_selected", rows, address, across)
    return confirm(client, page, address, canary="1", **more)


def turn(outcome: Any = None) -> None:
    """Let one waiting execution run and end with `outcome`. Then sweep, as a producer does. With None, only sweep."""
    if outcome is not None:
        Desk(BROKER).run(outcome, NEVER)
    sweep(BROKER, clock.now())


def test_every_state_has_its_icon() -> None:
    assert set(STATES) == set(Replay.State)


def test_the_canary_goes_first_and_the_others_follow(operator: Client) -> None:
    rows = FailedExecutionFactory.create_batch(3)
    page = ask(operator, "republish_selected", rows)
    assert "Canary: run one first" in page.content.decode()
    response = confirm(operator, page, canary="1")
    assert said(response) == [f"Execution {rows[0].pk} goes first. 2 others follow when it has succeeded."]
    assert states(*rows) == ["queued", "failed", "failed"]
    text = response.content.decode()
    assert "testing one run" in text
    assert "2 others wait for the canary." in text
    assert "data-poll-url" in text
    made = Replay.objects.get()
    assert (made.requested_by, made.selection) == ("operator", "chosen one by one")
    turn(Succeeded())
    assert states(*rows) == ["succeeded", "queued", "queued"]
    text = operator.get(LIST).content.decode()
    assert "3 of 3 sent." in text
    assert "data-poll-url" not in text  # the replay is over, so the page stops polling
    entry = LogEntry.objects.get(content_type=ContentType.objects.get_for_model(Replay))
    assert entry.change_message == f"start: 3 executions, canary {rows[0].pk}, chosen one by one"
    assert LogEntry.objects.filter(change_message=f"republish: replay {made.pk}").count() == 3


def test_a_failed_canary_stops_the_replay_and_the_page_says_why(operator: Client) -> None:
    rows = FailedExecutionFactory.create_batch(3)
    begin(operator, rows)
    before = list(FailedExecution.objects.filter(state="failed").order_by("pk").values())
    turn(Failed("builtins.ValueError", "<b>no</b> total"))
    assert list(FailedExecution.objects.exclude(pk=rows[0].pk).order_by("pk").values()) == before
    text = operator.get(LIST).content.decode()
    assert "The canary failed: builtins.ValueError: &lt;b&gt;no&lt;/b&gt; total" in text
    assert "<b>no" not in text
    assert "1 of 3 sent." in text


def test_all_matching_rows_are_sent_in_chunks(operator: Client) -> None:
    ids = fill(1_200, error_class="KeyError")
    other = FailedExecutionFactory(error_class="OSError")
    address = f"{LIST}?error_class=KeyError&p=1"
    response = begin(operator, [SchedulerExecution(pk=ids[0])], address, across=True, typed="1200", minutes="0")
    assert said(response) == [f"Execution {min(ids)} goes first. 1199 others follow when it has succeeded."]
    made = Replay.objects.get()
    assert (made.total, made.selection) == (1_200, "all failures with error_class=KeyError")
    assert [len(chunk.items) for chunk in ReplayChunk.objects.order_by("first")] == [500, 500, 200]
    Desk(BROKER).run(Succeeded(), NEVER)
    for _ in range(20):
        sweep(BROKER, clock.now())
    made.refresh_from_db()
    assert (made.state, made.sent) == ("done", 1_200)
    assert states(other) == ["failed"]


def test_the_page_says_how_many_rows_did_not_fit_into_one_request(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RequestLimits, "chunk_rows", 2)
    monkeypatch.setattr(RequestLimits, "seconds", -1.0)
    rows = FailedExecutionFactory.create_batch(5)
    (sentence,) = said(begin(operator, rows))
    assert sentence.endswith("Left out: 3, which were already handled or did not fit into one request.")
    assert Replay.objects.get().total == 2


def test_replay_requires_typed_count_and_valid_minutes(operator: Client) -> None:
    ids = fill(101)
    first = SchedulerExecution(pk=ids[0])
    assert "Type 101 to confirm." in begin(operator, [first], across=True, minutes="5").content.decode()
    page = begin(operator, [first], across=True, typed="101", minutes="x")
    assert "Enter a whole number of minutes" in page.content.decode()
    assert (
        BeautifulSoup(page.content, "html.parser")
        .find("input", id="id_canary", attrs={"name": "canary"})
        .has_attr("checked")
    )
    assert not Replay.objects.exists()


def test_a_single_row_gets_no_canary(operator: Client) -> None:
    page = ask(operator, "republish_selected", [FailedExecutionFactory()])
    assert 'name="canary"' not in page.content.decode()
    assert said(confirm(operator, page, canary="on")) == ["1 was republished."]
    assert not Replay.objects.exists()


def test_a_second_click_starts_nothing(operator: Client) -> None:
    rows = FailedExecutionFactory.create_batch(4)
    page = ask(operator, "republish_selected", rows)
    confirm(operator, page, canary="1")
    assert said(confirm(operator, page, canary="1")) == ["Already started. The second click did nothing."]
    assert states(*rows) == ["queued", "failed", "failed", "failed"]
    assert Replay.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_two_simultaneous_clicks_start_one_replay() -> None:
    user, rows = UserFactory(superuser=True), FailedExecutionFactory.create_batch(4)
    page = ask(logged_in(user), "republish_selected", rows)
    clients = [logged_in(user) for _ in range(3)]
    answers = at_once([lambda client=client: confirm(client, page, canary="1").content.decode() for client in clients])
    assert sorted("goes first" in answer for answer in answers) == [False, False, True]
    assert sum("Already started." in answer for answer in answers) == 2
    assert states(*rows) == ["queued", "failed", "failed", "failed"]


def test_each_execution_shows_its_replay_and_its_attempts(operator: Client) -> None:
    rows = FailedExecutionFactory.create_batch(2)
    AttemptFactory(execution=rows[1], number=4)
    begin(operator, rows)
    turn(Succeeded())
    turn(Failed("builtins.ValueError", "again"))  # the second execution of the replay fails again
    page = ask(operator, "discard_selected", [rows[1]])
    confirm(operator, page, reason="known <b>now</b>")
    address = reverse("admin:scheduling_schedulerexecution_change", args=[rows[1].pk])
    deeds = operator.get(address).context["deeds"]
    made = Replay.objects.get()
    assert [(entry["who"], entry["text"]) for _time, entry in deeds] == [
        ("operator", "Discard: known <b>now</b>"),
        ("operator", f"Republish: replay {made.pk}"),
    ]
    text = operator.get(address).content.decode()
    assert "Discard: known &lt;b&gt;now&lt;/b&gt;" in text
    for number in (4, 5):
        assert f'?attempt={number}"' in text
    untouched = reverse("admin:scheduling_schedulerexecution_change", args=[FailedExecutionFactory().pk])
    assert "Done by hand" not in operator.get(untouched).content.decode()


# --- stop -------------------------------------------------------------------------------------------


def stop_address(made: Replay) -> str:
    """Return the URL of the replay's stop button."""
    return reverse("admin:scheduling_replay_stop", args=[made.pk])


def test_stop_needs_a_post_and_the_permission_to_republish(operator: Client, viewer: Client, no_rights: Client) -> None:
    rows = FailedExecutionFactory.create_batch(3)
    begin(operator, rows)
    made = Replay.objects.get()
    assert stop_address(made) in operator.get(LIST).content.decode()
    assert stop_address(made) not in viewer.get(LIST).content.decode()
    assert [client.post(stop_address(made)).status_code for client in (viewer, no_rights, Client())] == [403, 403, 302]
    assert operator.get(stop_address(made)).status_code == 405
    made.refresh_from_db()
    assert made.state == "waiting"
    response = operator.post(stop_address(made), {"inbox": "1"}, follow=True)
    assert said(response) == ["It is stopped. 1 of 3 sent. What was not sent stays in the inbox."]
    assert "Stopped by operator." in response.content.decode()
    turn(Succeeded())
    assert states(*rows) == ["succeeded", "failed", "failed"]
    assert said(operator.post(stop_address(made), follow=True)) == ["It had ended already; nothing was stopped."]
    assert LogEntry.objects.filter(change_message="stop: 1 of 3 sent").count() == 1


# --- the pages of replays ---------------------------------------------------------------------------


def test_the_list_and_the_page(viewer: Client, operator: Client, no_rights: Client) -> None:
    rows = FailedExecutionFactory.create_batch(3)
    begin(operator, rows)
    made = Replay.objects.get()
    pages = [
        reverse("admin:scheduling_replay_changelist"),
        reverse("admin:scheduling_replay_change", args=[made.pk]),
        reverse("admin:scheduling_replay_part"),
    ]
    for address in pages:
        assert viewer.get(address).status_code == 200, address
        assert no_rights.get(address).status_code == 403, address
    assert viewer.get(pages[2]).headers["X-Part"] == "replays"
    text = viewer.get(pages[1]).content.decode()
    for row in rows:
        assert reverse("admin:scheduling_schedulerexecution_change", args=[row.pk]) in text
    assert text.count("still in the inbox") == 2
    assert ">failed</span>" not in text
    assert viewer.post(pages[1], {"state": "done"}).status_code == 405
    rows[1].delete()
    assert "removed by retention" in viewer.get(pages[1]).content.decode()
    ReplayChunk.objects.update(items={"x": 1})
    assert viewer.get(pages[1]).status_code == 200


def test_the_queries_of_the_inbox_do_not_grow_with_the_replays(operator: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            operator.get(LIST)
        return len(captured)

    rows = FailedExecutionFactory.create_batch(2)
    begin(operator, rows)
    few, made = queries(), Replay.objects.get()
    for number in range(30):
        Replay.objects.create(
            key=f"{number:032}", requested_by="x", created_at=clock.now(), selection="x", state="waiting",
            canary=made.canary, total=5,
        )  # fmt: skip
    assert queries() - few <= 1


def test_a_replay_names_its_executions_as_their_pages_do(operator: Client) -> None:
    def queries(count: int) -> int:
        rows = [
            FailedExecutionFactory(scheduler=SchedulerFactory(description=f"Orders {n}", timezone="Europe/Berlin"))
            for n in range(count)
        ]
        begin(operator, rows)
        address = reverse("admin:scheduling_replay_change", args=[Replay.objects.latest("pk").pk])
        with CaptureQueriesContext(connection) as asked:
            text = operator.get(address).content.decode()
        names = [link.text for link in BeautifulSoup(text, "html.parser").select(".sch-samples a")]
        assert len(names) == count
        assert all(re.fullmatch(r"Orders \d, (\S+ )?\d\d:\d\d CES?T", name) for name in names)
        return len(asked)

    assert queries(2) == queries(6)
