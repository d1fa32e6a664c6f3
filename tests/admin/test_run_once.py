"""Tests of the page "Run once" of a worker, report or reminder."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from scheduling.core.lifecycle import State, Trigger
from scheduling.models import SchedulerExecution, Worker
from tests.admin.audit import entry_line
from tests.admin.conftest import logged_in, said
from tests.factories import ReminderFactory, ReportFactory, UserFactory, WorkerFactory

pytestmark = pytest.mark.django_db


def address(row: Model, page: str = "run") -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_{page}", args=[row.pk])


def press(client: Client, row: Model, **typed: Any) -> Any:
    """Open the page and press its button, as a browser does."""
    page = client.get(address(row))
    assert page.status_code == 200
    key = dict(page.context["c"].hidden)
    for_ = {"params.for": f"{row._meta.model_name}/{getattr(row, 'handler_name', '')}", "params": "{}"}
    fields = {f"params.field.{name}": value for name, value in typed.items()}
    return client.post(address(row), {**key, **for_, **fields}, follow=True)


def typed_worker(**params: Any) -> Worker:
    """The worker with a params model, and with these default parameters."""
    row: Worker = WorkerFactory(name="tests.typed")
    row.params = params
    row.save()
    return row


@pytest.fixture
def operator(db: None) -> Client:
    """A user who may see and run each kind of target, and see executions."""
    views = [f"scheduling.view_{model}" for model in ("worker", "reminder", "schedulerexecution")]
    rights = ["scheduling.run_scheduler", "cron_reports.view_report", *views]
    return logged_in(UserFactory(username="operator", permissions=rights))


@pytest.mark.parametrize("factory", [WorkerFactory, ReportFactory, ReminderFactory])
def test_a_target_runs_once_without_a_schedule(operator: Client, factory: Any) -> None:
    row = factory()
    button = f'<a href="{address(row)}">Run once</a>'
    assert button in operator.get(address(row, "change")).content.decode()
    response = press(operator, row)
    made = SchedulerExecution.objects.get()
    assert (made.scheduler, made.type, made.target_id, made.params) == (None, row._meta.model_name, row.pk, {})
    assert (made.state, made.trigger, made.requested_by) == (State.QUEUED.value, Trigger.MANUAL.value, "operator")
    page = reverse("admin:scheduling_schedulerexecution_change", args=[made.pk])
    assert response.redirect_chain == [(page, 302)]
    assert said(response) == ["Started."]
    assert entry_line(LogEntry.objects.get()) == f"run once: execution {made.pk}"


def test_parameters_for_this_run(operator: Client) -> None:
    row = typed_worker(since_days=5)
    assert "the target&#x27;s: 5" in operator.get(address(row)).content.decode()
    refused = press(operator, row, since_days="700")
    assert refused.context["c"].params.errors
    assert not SchedulerExecution.objects.exists()
    press(operator, row, since_days="7")
    made = SchedulerExecution.objects.get()
    assert made.params == {"since_days": 7}
    assert entry_line(LogEntry.objects.get()) == f"run once: execution {made.pk}; params.since_days: (empty) -> 7"


def test_a_second_click_runs_nothing(operator: Client) -> None:
    row = WorkerFactory()
    key = dict(operator.get(address(row)).context["c"].hidden)
    for _click in range(2):
        response = operator.post(address(row), key)
        assert response.status_code == 302
    assert SchedulerExecution.objects.count() == LogEntry.objects.count() == 1


def test_a_target_whose_parameters_do_not_fit_is_not_run(operator: Client) -> None:
    row = typed_worker()
    for params, sentence in (({"since_days": 700}, "do not fit the code"), ([1], "are not a JSON object")):
        Worker.objects.filter(pk=row.pk).update(params=params)
        assert sentence in operator.post(address(row)).content.decode()
    assert not SchedulerExecution.objects.exists()


def test_only_users_who_may_run_have_the_button(viewer: Client) -> None:
    row = WorkerFactory()
    assert address(row) not in viewer.get(address(row, "change")).content.decode()
    assert [viewer.get(address(row)).status_code, viewer.post(address(row)).status_code] == [403, 403]
    blind = logged_in(UserFactory(permissions=["scheduling.run_scheduler"]))
    assert blind.post(address(row)).status_code == 403
    assert not SchedulerExecution.objects.exists()
    without_runs = logged_in(UserFactory(permissions=["scheduling.run_scheduler", "scheduling.view_worker"]))
    assert without_runs.post(address(row)).headers["Location"] == address(row, "change")
    assert SchedulerExecution.objects.count() == 1


def test_a_target_without_code_says_what_follows(operator: Client) -> None:
    sentence = (
        "The code of this worker is not registered in this web server, so its parameters cannot be checked here. "
        "The run starts anyway."
    )
    assert sentence in operator.get(address(WorkerFactory(name="tests.absent"))).content.decode()
