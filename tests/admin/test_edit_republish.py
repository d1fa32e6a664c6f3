"""Tests of "Edit and republish": the form and its checks, the list of changes, the permission and a second click."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse
from pydantic import BaseModel, SecretStr

from scheduling.broker.database import DatabaseBroker
from scheduling.handlers import registry
from scheduling.inbox.actions import republish
from scheduling.models import SchedulerExecution
from tests.admin.audit import entry_line
from tests.admin.conftest import VIEW, logged_in, said
from tests.apps.sample.workers import noop
from tests.factories import FailedExecutionFactory, SchedulerFactory, UserFactory, WorkerFactory

BROKER = DatabaseBroker()


class Orders(BaseModel, extra="forbid"):
    """The params model of the handler in these tests."""

    region: str
    amount: int = 1
    token: SecretStr = SecretStr("")


@pytest.fixture
def row(db: None, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A failed execution of a handler with a params model. The region comes from the target's defaults."""
    handler = registry.Handler("worker", "tests.orders", noop, params=Orders)
    monkeypatch.setitem(registry._handlers, ("worker", "tests.orders"), handler)
    worker = WorkerFactory(name="tests.orders", params={"region": "eu"})
    return FailedExecutionFactory(
        scheduler=SchedulerFactory(worker=worker, params={"amount": 1}), params={"amount": 1, "token": "hunter2"}
    )


def edit_address(row: Any) -> str:
    """Return the address of the edit page."""
    return reverse("admin:scheduling_failedexecution_edit", args=[row.pk])


def post_params(client: Client, row: Any, params: Any, **more: Any) -> Any:
    """Post the edit form with these params."""
    text = params if isinstance(params, str) else json.dumps(params)
    return client.post(edit_address(row), {"params": text, "attempt": row.attempt, **more}, follow=True)


def confirm(client: Client, row: Any, page: Any) -> Any:
    """Post the form of the confirmation page."""
    return client.post(edit_address(row), dict(page.context["c"].hidden), follow=True)


def test_the_execution_is_republished_with_the_edited_params(operator: Client, row: Any) -> None:
    detail = operator.get(reverse("admin:scheduling_schedulerexecution_change", args=[row.pk]))
    assert edit_address(row) in detail.content.decode()
    page = operator.get(edit_address(row)).content.decode()
    assert "&quot;amount&quot;: 1" in page
    assert "&quot;region&quot;: &quot;eu&quot;" in page  # the region comes from the target's defaults
    asked = post_params(operator, row, {"amount": 2, "token": "••••••"})
    assert [(change.name, change.old, change.new) for change in asked.context["c"].changes] == [("amount", "1", "2")]
    row.refresh_from_db()
    assert row.state == "failed"
    address = reverse("admin:scheduling_scheduler_change", args=[row.scheduler_id])
    assert said(confirm(operator, row, asked)) == [
        "It was republished with the parameters that are shown here.",
        "Its schedule keeps its own parameters, and runs with those next time: "
        f'<a href="{address}">{row.scheduler}</a>',
    ]
    stored = SchedulerExecution.objects.get(pk=row.pk)
    assert (stored.state, stored.params) == ("queued", {"amount": 2, "token": "hunter2"})
    assert (stored.retry_count, stored.reason) == (0, "Republished by operator, with edited parameters.")
    assert stored.scheduler is not None
    assert stored.scheduler.params == {"amount": 1}
    assert entry_line(LogEntry.objects.get()) == "republish; params.amount: 1 -> 2"
    assert said(confirm(operator, row, asked)) == ["Already handled by someone else."]
    assert LogEntry.objects.count() == 1


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ('{"amount": ', "This is not JSON"),
        ("[1]", "Write a JSON object"),
        ({"amount": "many"}, "amount: must be a whole number"),
        ({"<b>x</b>": 1}, "&lt;b&gt;x&lt;/b&gt;"),
        ({"amount": 1, "region": "a\x00b"}, "NUL"),
    ],
)
def test_invalid_params_are_refused_with_a_message(operator: Client, row: Any, params: Any, sentence: str) -> None:
    for more in ({}, {"post": "yes"}):
        page = post_params(operator, row, params, **more).content.decode()
        assert sentence in page
        assert "<b>x" not in page
    assert SchedulerExecution.objects.get(pk=row.pk).state == "failed"
    assert not LogEntry.objects.exists()


def test_secrets_are_hidden_everywhere_and_can_be_replaced(operator: Client, row: Any) -> None:
    assert "hunter" not in operator.get(edit_address(row)).content.decode()
    asked = post_params(operator, row, {"amount": 1, "token": "hunter3"})
    (change,) = asked.context["c"].changes
    assert (change.name, change.old, change.new) == ("token", '"••••••"', '"••••••"')
    confirm(operator, row, asked)
    assert SchedulerExecution.objects.get(pk=row.pk).params == {"amount": 1, "token": "hunter3"}
    assert "hunter" not in LogEntry.objects.get().change_message


def test_an_execution_that_failed_again_meanwhile_is_not_republished(operator: Client, row: Any) -> None:
    asked = post_params(operator, row, {"amount": 2})
    SchedulerExecution.objects.filter(pk=row.pk).update(attempt=row.attempt + 1)
    assert "It ran and failed again meanwhile" in confirm(operator, row, asked).content.decode()
    stored = SchedulerExecution.objects.get(pk=row.pk)
    assert (stored.state, stored.params["amount"]) == ("failed", 1)


def test_unchanged_params_give_a_message_and_hostile_values_are_escaped(operator: Client, row: Any) -> None:
    same = post_params(operator, row, {"amount": 1, "token": "••••••"})
    assert "Nothing is changed" in same.content.decode()
    page = post_params(
        operator, row, {"amount": 1, "region": "<script>alert(1)</script>\u202e\x1b[31m"}
    ).content.decode()
    assert "<script>alert" not in page
    assert "\x1b" not in page


def test_the_edit_page_needs_the_permission_to_republish(viewer: Client, row: Any) -> None:
    blind = logged_in(UserFactory(username="blind", permissions=[*VIEW[:2], "scheduling.republish_failedexecution"]))
    for client in (viewer, blind):
        assert client.get(edit_address(row)).status_code == 403
        assert post_params(client, row, {"amount": 2}, post="yes").status_code == 403
        detail = client.get(reverse("admin:scheduling_schedulerexecution_change", args=[row.pk]))
        assert edit_address(row) not in detail.content.decode()
    assert SchedulerExecution.objects.get(pk=row.pk).state == "failed"


def test_an_unreadable_or_missing_execution_cannot_be_edited(operator: Client, row: Any) -> None:
    SchedulerExecution.objects.filter(pk=row.pk).update(type="")
    assert said(operator.get(edit_address(row), follow=True)) == [
        "Its message cannot be read, so it has no parameters."
    ]
    row.pk = 99_999
    assert "Already handled by someone else." in said(operator.get(edit_address(row), follow=True))


def test_parameters_are_for_one_execution_only(row: Any) -> None:
    other = FailedExecutionFactory()
    with pytest.raises(ValueError, match="one id"):
        republish([row.pk, other.pk], BROKER, "ann", params={"amount": 2})
    assert republish([row.pk], BROKER, "ann", params={"amount": 2}, attempt=row.attempt - 1) == []
    assert republish([row.pk], BROKER, "ann", params={"amount": 2}, attempt=row.attempt) == [row.pk]
    assert republish([row.pk], BROKER, "bob", params={"amount": 3}, attempt=row.attempt) == []
    assert SchedulerExecution.objects.get(pk=row.pk).params == {"amount": 2}
