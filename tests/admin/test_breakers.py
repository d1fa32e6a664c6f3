"""The pages of circuit breakers say what waits and why, and a user lets the runs go on."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from scheduling.execution.breakers import read_circuit
from tests.admin.conftest import logged_in, said
from tests.admin.pages import text_in
from tests.factories import BreakerFactory, GroupFactory, SchedulerFactory, UserFactory, WorkerFactory

pytestmark = pytest.mark.django_db

LIST = reverse("admin:scheduling_breaker_changelist")
NAME = "tests.depending"


def page(row: Any, name: str = "change") -> str:
    return reverse(f"admin:scheduling_breaker_{name}", args=[row.pk])


def has_button(client: Client, row: Any) -> bool:
    """Whether the page has the button. Since Django 6, it stands outside of the element `content-main`."""
    return "Let the runs go on" in client.get(page(row)).content.decode()


def test_the_list_and_the_page_say_what_it_does_and_why(operator: Client) -> None:
    row = BreakerFactory(name=NAME)
    assert "8 of 10 runs within 60 s have failed." in text_in(operator.get(LIST))
    shown = text_in(operator.get(page(row)))
    assert "the depot does not answer" in shown
    assert "It opens when 50 % of at least 3 runs within 30 s have failed." in shown
    assert has_button(operator, row)


def test_a_user_lets_the_runs_go_on(operator: Client) -> None:
    row = BreakerFactory(name=NAME)
    response = operator.post(page(row, "reset"), follow=True)
    assert said(response) == [f"worker {NAME}: the runs go on."]
    assert read_circuit("worker", NAME).state == "half_open"
    entry = LogEntry.objects.latest("pk")
    assert "half_open" in entry.change_message
    assert said(operator.post(page(row, "reset"), follow=True)) == ["It is not open."]
    assert operator.get(page(row, "reset")).status_code == 405
    assert not has_button(operator, row)


def test_a_viewer_has_no_button(viewer: Client) -> None:
    row = BreakerFactory(name=NAME)
    assert not has_button(viewer, row)
    assert viewer.post(page(row, "reset")).status_code == 403


def test_a_user_who_sees_some_groups_only_does_not_see_errors_of_others() -> None:
    row = BreakerFactory(name=NAME)
    permissions = ["scheduling.view_breaker", "scheduling.pause_work"]
    SchedulerFactory(group=GroupFactory())
    client = logged_in(UserFactory(permissions=permissions))
    assert {client.get(address).status_code for address in (LIST, page(row))} == {403}
    assert client.post(page(row, "reset")).status_code == 403
    assert logged_in(UserFactory(permissions=[*permissions, "scheduling.view_all_groups"])).get(LIST).status_code == 200


def test_the_pages_of_the_handler_and_its_schedule_say_why_runs_wait(operator: Client) -> None:
    worker = WorkerFactory(name=NAME)
    schedule = SchedulerFactory(rare=True, handler=NAME, params={"directory": "x"})
    addresses = [
        reverse("admin:scheduling_worker_change", args=[worker.pk]),
        reverse("admin:scheduling_scheduler_change", args=[schedule.pk]),
    ]
    for address in addresses:
        assert "circuit breaker" not in text_in(operator.get(address)).lower().replace("circuit breakers", "")
    BreakerFactory(name=NAME)
    for address in addresses:
        assert f"The circuit breaker of the worker '{NAME}' is open since" in text_in(operator.get(address))
