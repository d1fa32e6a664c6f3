"""Republish and discard of one failure: a button in its row, a short confirmation, and back to the same list."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from bs4 import BeautifulSoup
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.admin.inbox.answer import DiscardForm
from scheduling.models import Replay, ReplayChunk, SchedulerExecution
from tests.admin.conftest import logged_in, said
from tests.admin.inbox import LIST, ask, confirm, states
from tests.factories import FailedExecutionFactory, SchedulerExecutionFactory, UserFactory

EACH = f"{LIST}?group=each"


def page_of(row: Any) -> str:
    return reverse("admin:scheduling_schedulerexecution_change", args=[row.pk])


def links(client: Client, address: str = EACH) -> dict[str, str]:
    """Return the links of the first row's buttons and menu, by their labels."""
    page = BeautifulSoup(client.get(address).content, "html.parser")
    cell = page.select_one("td.field-buttons")
    assert cell is not None
    found = {}
    for link in cell.find_all("a"):
        (hidden,) = link.select(".sch-hidden") or [None]
        if hidden is not None:
            hidden.extract()
        found[link.text] = str(link["href"])
    return found


def press(client: Client, address: str, **answers: Any) -> Any:
    """Open a confirmation page and press its button."""
    page = BeautifulSoup(client.get(address).content, "html.parser").select_one("form.sch-form")
    assert page is not None
    data = {str(field["name"]): field.get("value", "") for field in page.select("input[name]")}
    return client.post(address, data | answers, follow=True)


def test_two_clicks_republish_a_failure_and_lead_back_to_the_list(operator: Client) -> None:
    row, other = FailedExecutionFactory.create_batch(2, error_class="KeyError")
    address = f"{EACH}&error_class=KeyError&q={row.pk}"
    button = links(operator, address)["Republish"]
    assert parse_qs(urlsplit(button).query) == {"next": [address]}
    text = operator.get(button).content.decode()
    assert "This run will be queued again; the retry count starts over." in text
    assert 'name="minutes"' not in text
    response = press(operator, button)
    assert response.redirect_chain == [(address, 302)]
    assert states(row, other) == ["queued", "failed"]
    chip = reverse("admin:scheduling_schedulerexecution_chip", args=[row.pk])
    assert said(response) == [
        f'Queued again: <a href="{page_of(row)}">execution {row.pk}</a>.'
        f' <span role="status" data-poll-url="{chip}" data-poll-seconds="2"></span>'
    ]
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.change_message) == (str(row.pk), "republish")


@pytest.mark.parametrize("name", ["Republish", "Discard"])
def test_cancel_leads_back_to_where_the_operator_was(operator: Client, name: str) -> None:
    row = FailedExecutionFactory(error_class="KeyError")
    address = f"{EACH}&error_class=KeyError"

    def back(button: str) -> str:
        link = BeautifulSoup(operator.get(button).content, "html.parser").select_one("a.closelink")
        assert link is not None
        assert link.text == "Cancel"
        return str(link["href"])

    assert back(links(operator, address)[name]) == address
    page = {"Republish": "republish", "Discard": "discard"}[name]
    assert back(reverse(f"admin:scheduling_failedexecution_{page}", args=[row.pk])) == page_of(row)


def test_the_message_sends_the_present_state_and_the_end(operator: Client) -> None:
    address = reverse("admin:scheduling_schedulerexecution_chip", args=[SchedulerExecutionFactory(running=True).pk])
    response = operator.get(address)
    assert response.headers["X-Part"] == "chip"
    assert "running" in response.content.decode()
    assert "data-poll-end" not in response.content.decode()
    SchedulerExecution.objects.update(state="failed")
    assert "data-poll-end" in operator.get(address).content.decode()
    assert operator.post(address).status_code == 405


def test_a_user_who_may_not_view_executions_gets_no_state_of_the_run(db: None) -> None:
    rights = ["scheduling.view_failedexecution", "scheduling.republish_failedexecution"]
    client, row = logged_in(UserFactory(permissions=rights)), FailedExecutionFactory()
    assert "data-poll-url" not in said(press(client, links(client)["Republish"]))[0]
    assert client.get(reverse("admin:scheduling_schedulerexecution_chip", args=[row.pk])).status_code == 403


def test_the_buttons_of_a_group_have_one_primary(operator: Client) -> None:
    FailedExecutionFactory.create_batch(2, fingerprint="a" * 40)
    page = BeautifulSoup(operator.get(LIST).content, "html.parser")
    buttons = {str(button.text): button["class"] for button in page.select(".sch-group-actions button")}
    assert buttons == {"Republish": ["button", "default"], "Discard": ["button", "sch-outline"]}


def test_the_only_failure_of_a_group_has_the_short_pages(operator: Client) -> None:
    row = FailedExecutionFactory(error_class="KeyError")
    FailedExecutionFactory.create_batch(2, error_class="OSError")
    address = f"{LIST}?group=error&q=invoice"
    page = BeautifulSoup(operator.get(address).content, "html.parser")
    found = {str(link.text): str(link["href"]) for link in page.select(".sch-group-actions a")}
    assert list(found) == ["Republish", "Discard"]
    assert len(page.select(".sch-group-actions button")) == 2  # the buttons of the other group
    response = press(operator, found["Republish"])
    assert response.redirect_chain == [(address, 302)]
    assert said(response)[0].startswith("Queued again: ")
    assert states(row) == ["queued"]


def test_the_only_unreadable_message_of_a_group_can_be_discarded(operator: Client) -> None:
    SchedulerExecutionFactory(scheduler=None, failed=True, type="", target_name="", trigger="message")
    page = BeautifulSoup(operator.get(f"{LIST}?group=error").content, "html.parser")
    assert [link.text for link in page.select(".sch-group-actions :is(a, button)")] == ["Discard"]


def test_a_second_click_republishes_nothing(operator: Client) -> None:
    row = FailedExecutionFactory()
    button = links(operator)["Republish"]
    post = {"attempt": row.attempt, "next": EACH}
    assert operator.post(button, post).status_code == 302
    response = operator.post(button, post, follow=True)
    assert response.redirect_chain[-1][0] == EACH
    assert "Already handled by someone else." in said(response)
    assert LogEntry.objects.count() == 1


def test_a_newer_failure_is_not_republished_unseen(operator: Client) -> None:
    row = FailedExecutionFactory()
    for name in ("Republish", "Discard"):
        button = links(operator)[name]
        response = operator.post(button, {"attempt": row.attempt - 1, "reason": "known", "next": EACH})
        assert "It ran and failed again meanwhile." in response.content.decode()
    assert states(row) == ["failed"]


def test_a_discard_needs_a_reason(operator: Client) -> None:
    row = FailedExecutionFactory()
    button = links(operator)["Discard"]
    refused = press(operator, button)
    assert "Enter a reason. Without a reason, nothing is discarded." in refused.content.decode()
    assert states(row) == ["failed"]
    response = press(operator, button, reason="known <b>defect</b>")
    assert response.redirect_chain == [(EACH, 302)]
    assert states(row) == ["discarded"]
    assert LogEntry.objects.get().change_message == "discard: known <b>defect</b>"


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "javascript:alert(1)", "/" * 3000, ""])
def test_the_way_back_stays_on_this_site(operator: Client, target: str) -> None:
    row = FailedExecutionFactory()
    address = reverse("admin:scheduling_failedexecution_republish", args=[row.pk])
    response = operator.post(address, {"attempt": row.attempt, "next": target})
    assert response.headers["Location"] == page_of(row)


def test_a_message_that_cannot_be_read_can_only_be_discarded(operator: Client) -> None:
    SchedulerExecutionFactory(scheduler=None, failed=True, type="", target_name="", trigger="message")
    row = SchedulerExecution.objects.get()
    assert set(links(operator)) == {"Open", "Discard"}
    response = operator.get(reverse("admin:scheduling_failedexecution_republish", args=[row.pk]), follow=True)
    assert said(response) == ["Its message cannot be read. Discard it."]


def test_a_viewer_can_only_open_a_failure(viewer: Client) -> None:
    row = FailedExecutionFactory()
    assert links(viewer) == {"Open": page_of(row)}
    for name in ("republish", "discard"):
        address = reverse(f"admin:scheduling_failedexecution_{name}", args=[row.pk])
        assert viewer.get(address).status_code == viewer.post(address).status_code == 403


def test_the_page_of_a_failure_has_two_buttons_and_a_menu(operator: Client) -> None:
    row = FailedExecutionFactory()
    tools = BeautifulSoup(operator.get(page_of(row)).content, "html.parser").select_one(".sch-tools")
    assert tools is not None
    buttons = [link.contents[0] for link in tools.find_all("a", recursive=False)]
    assert buttons == ["Republish", "Edit and republish"]
    entries = {str(item.a.text): str(item.span.text) for item in tools.select("li") if item.a and item.span}
    assert list(entries) == ["Discard", "Run again", "Edit and run again", "History"]
    assert entries["Run again"] == "A new run with the same parameters. This failure stays in the inbox."
    assert entries["Edit and run again"] == "A new run with other parameters. This failure stays in the inbox."
    page = operator.get(page_of(SchedulerExecutionFactory(succeeded=True))).content.decode()
    assert "A new run with other parameters." in page
    assert "This failure" not in page


# --- the two views --------------------------------------------------------------------------------


def test_the_view_by_error_comes_first_if_two_failures_share_a_cause(operator: Client) -> None:
    FailedExecutionFactory(fingerprint="a" * 40)
    assert operator.get(LIST).context["grouped"] is False
    FailedExecutionFactory(fingerprint="a" * 40)
    assert operator.get(LIST).context["grouped"] is True
    assert operator.get(f"{LIST}?fingerprint={'a' * 40}").context["grouped"] is False
    assert operator.get(f"{LIST}?p=1").context["grouped"] is False


def test_the_last_choice_of_a_view_is_remembered(operator: Client) -> None:
    FailedExecutionFactory.create_batch(2, fingerprint="a" * 40)
    page = operator.get(LIST)
    assert operator.get(LIST + page.context["flat_query"]).context["grouped"] is False
    assert operator.get(LIST).context["grouped"] is False
    assert operator.get(f"{LIST}?group=error").context["grouped"] is True
    assert operator.get(LIST).context["grouped"] is True


# --- many at once ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("count", "ticked"), [(2, False), (19, False), (20, True)])
def test_the_canary_is_ticked_from_twenty_executions_on(operator: Client, count: int, ticked: bool) -> None:
    page = ask(operator, "republish_selected", FailedExecutionFactory.create_batch(count))
    box = BeautifulSoup(page.content, "html.parser").select_one('input[name="canary"]')
    assert box is not None
    assert box.has_attr("checked") is ticked


def test_the_questions_stand_above_the_list_of_executions(operator: Client) -> None:
    text = ask(operator, "republish_selected", FailedExecutionFactory.create_batch(2)).content.decode()
    assert text.index('name="canary"') < text.index('id="sch-samples"')


def test_a_discard_of_many_ticked_rows_asks_for_their_number(operator: Client) -> None:
    rows = FailedExecutionFactory.create_batch(DiscardForm.type_above + 1)
    page = ask(operator, "discard_selected", rows)
    refused = confirm(operator, page, reason="known", typed="20")
    assert states(*rows) == ["failed"] * len(rows)
    assert "Type 21 to confirm." in refused.content.decode()
    confirm(operator, page, reason="known", typed="21")
    assert states(*rows) == ["discarded"] * len(rows)


# --- replays --------------------------------------------------------------------------------------


def test_a_replay_says_how_its_executions_ended(operator: Client) -> None:
    rows = FailedExecutionFactory.create_batch(6)
    made = Replay.objects.create(
        key="00000000-0000-0000-0000-000000000001", requested_by="ada", created_at=clock.now(), selection="all",
        state=Replay.State.DONE, finished_at=clock.now(), canary=rows[0].pk, canary_attempt=rows[0].attempt,
        total=6, position=6, sent=5, skipped=1,
    )  # fmt: skip
    ReplayChunk.objects.create(replay=made, first=0, items=[[row.pk, row.attempt] for row in rows])
    stored = SchedulerExecution.objects
    stored.filter(pk__in=[row.pk for row in rows[:2]]).update(state="succeeded", attempt=9)
    stored.filter(pk=rows[2].pk).update(attempt=9)  # failed again
    stored.filter(pk=rows[3].pk).update(state="discarded")
    stored.filter(pk=rows[4].pk).update(state="running", attempt=9)  # rows[5] was skipped
    text = operator.get(EACH).content.decode()
    assert "2 succeeded, 1 failed again, 1 cancelled or discarded, 1 still to end." in text
    page = operator.get(reverse("admin:scheduling_replay_change", args=[made.pk])).content.decode()
    assert "1 failed again" in page


@pytest.mark.parametrize("items", ["x", {"a": 1}, [1], [[1]], [["1", 2]], [[2**70, 1]], [[True, 1]]], ids=str)
def test_a_damaged_selection_breaks_no_page(operator: Client, items: Any) -> None:
    made = Replay.objects.create(
        key="00000000-0000-0000-0000-000000000001", requested_by="ada", created_at=clock.now(), selection="all",
        state=Replay.State.RELEASED, total=6, position=6, next_at=clock.now(),
    )  # fmt: skip
    ReplayChunk.objects.create(replay=made, first=0, items=items)
    assert operator.get(EACH).status_code == 200
