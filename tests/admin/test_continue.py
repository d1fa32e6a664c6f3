"""An action on many rows that has used up the time of its request goes on by the button "Continue" of its message."""

from __future__ import annotations

import itertools
from datetime import timedelta
from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.models import Scheduler, SchedulerExecution
from scheduling.operations.batches import RequestLimits
from tests.admin.inbox import LIST, ask, confirm, fill, states
from tests.factories import FailedExecutionFactory, SchedulerFactory

SCHEDULES = reverse("admin:scheduling_scheduler_changelist")


@pytest.fixture(autouse=True)
def two_rows_for_each_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RequestLimits, "chunk_rows", 2)
    monkeypatch.setattr(RequestLimits, "seconds", -1.0)


def messages(response: Any) -> list[str]:
    """The texts of the messages on the page, with the labels of their buttons."""
    page = BeautifulSoup(response.content, "html.parser")
    return [" ".join(line.text.split()) for line in page.select(".messagelist li")]


def go_on(client: Client, response: Any) -> Any:
    """Press "Continue". The page has one such button."""
    (form,) = BeautifulSoup(response.content, "html.parser").select("form.sch-continue")
    data: dict[str, list[str]] = {}
    for field in form.select("input"):
        data.setdefault(str(field["name"]), []).append(str(field["value"]))
    return client.post(str(form["action"]), data, follow=True)


def test_ticked_failures_are_republished_to_the_last(operator: Client) -> None:
    rows = FailedExecutionFactory.create_batch(5)
    other = FailedExecutionFactory()
    response = confirm(operator, ask(operator, "republish_selected", rows))
    assert messages(response) == ["2 were republished. 3 remain. Continue"]
    response = go_on(operator, response)
    assert messages(response) == ["2 were republished. 1 remains. Continue"]
    assert messages(go_on(operator, response)) == ["1 was republished."]
    assert states(*rows, other) == ["queued"] * 5 + ["failed"]
    assert LogEntry.objects.count() == 5


def test_a_number_that_was_typed_is_not_typed_again(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RequestLimits, "chunk_rows", 110)
    ids = fill(230)
    address = f"{LIST}?q=invoice"
    first = SchedulerExecution.objects.get(pk=ids[0])
    page = ask(operator, "republish_selected", [first], address, across=True)
    response = confirm(operator, page, address, typed="230")
    late = FailedExecutionFactory(finished_at=clock.now() + timedelta(seconds=1))
    assert messages(response) == ["110 were republished. 120 remain. Continue"]
    response = go_on(operator, response)
    assert messages(response) == ["110 were republished. 10 remain. Continue"]
    assert messages(go_on(operator, response)) == ["10 were republished."]
    assert response.redirect_chain[-1][0] == address
    assert states(late) == ["failed"]  # it failed after the operator had answered


def test_what_others_have_handled_is_said(operator: Client) -> None:
    rows = FailedExecutionFactory.create_batch(6)
    response = confirm(operator, ask(operator, "republish_selected", rows))
    SchedulerExecution.objects.filter(pk=rows[5].pk).update(state="discarded")
    response = go_on(operator, response)
    assert messages(response) == ["2 were republished. Already handled: 1. 1 remains. Continue"]


def test_the_rest_of_a_spread_republish_keeps_its_distances(operator: Client) -> None:
    rows = FailedExecutionFactory.create_batch(5)
    response = confirm(operator, ask(operator, "republish_selected", rows), minutes="10")
    for _number in range(2):
        response = go_on(operator, response)
    wakes = list(SchedulerExecution.objects.filter(state="queued").order_by("pk").values_list("wake_at", flat=True))
    assert [(late - early).total_seconds() for early, late in itertools.pairwise(wakes)] == [120.0] * 4


@pytest.mark.parametrize("start", ["x", "2001-01-01T00:00:00+00:00", "9999-12-31T00:00:00+00:00"])
def test_an_impossible_start_of_the_rest_is_now(operator: Client, start: str) -> None:
    rows = FailedExecutionFactory.create_batch(2)
    before = clock.now()
    confirm(operator, ask(operator, "republish_selected", rows), minutes="10", start=start)
    wake = SchedulerExecution.objects.get(pk=rows[0].pk).wake_at
    assert wake is not None
    assert before <= wake < before + timedelta(minutes=5)


def test_the_rest_of_a_discard_has_the_same_reason(operator: Client) -> None:
    rows = FailedExecutionFactory.create_batch(3)
    response = confirm(operator, ask(operator, "discard_selected", rows), reason='it is <b>"known"</b>')
    assert messages(response) == ["2 were discarded. 1 remains. Continue"]
    go_on(operator, response)
    reasons = set(SchedulerExecution.objects.filter(state="discarded").values_list("reason", flat=True))
    assert reasons == {'Discarded by operator: it is <b>"known"</b>'}
    assert states(*rows) == ["discarded"] * 3


def test_schedules_are_paused_and_resumed_to_the_last(operator: Client) -> None:
    rows = SchedulerFactory.create_batch(3)
    data = {"action": "pause_selected", "_selected_action": [row.pk for row in rows], "post": "yes", "reason": "a move"}
    response = operator.post(SCHEDULES, data, follow=True)
    assert messages(response) == ["2 schedules were paused.", "1 remains. Continue"]
    assert messages(go_on(operator, response)) == ["1 schedule was paused."]
    assert set(Scheduler.objects.values_list("status", "pause_reason")) == {(False, "a move")}
    response = operator.post(SCHEDULES, {**data, "action": "resume_selected"}, follow=True)
    assert messages(go_on(operator, response)) == ["1 schedule was resumed."]
    assert not Scheduler.objects.filter(status=False).exists()
