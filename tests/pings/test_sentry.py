"""Sentry is told about each run as a check-in, with which its monitors set themselves up."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sentry_sdk
from django.core.checks import run_checks
from django.utils import timezone as clock

from scheduling.models import Ping, SchedulerExecution
from scheduling.pings import sentry as module
from scheduling.pings.sender import Sender
from scheduling.testing import drain
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.pings.healthchecks_server import Healthchecks
from tests.pings.sentry_server import Sentry

pytestmark = pytest.mark.django_db


def work() -> None:
    """Run all that is due, and send what is to be told."""
    drain(raise_errors=False)
    sender = Sender()
    while sender.send_due(clock.now()):
        pass


def test_a_run_is_a_check_in_with_its_duration_and_the_configuration(sentry: Sentry, settings: Any) -> None:
    settings.CRON_RELEASE, settings.CRON_DEPLOYMENT = "r42", "staging"
    row = SchedulerFactory(
        name="invoices", schedule="30 2 * * mon-fri", timezone="Europe/Madrid", time_limit=600, max_retries=1,
        retry_delay_ms=60_000,
    )  # fmt: skip
    ManualExecutionFactory(scheduler=row)
    drain()
    Ping.objects.update(begun_at=datetime(2026, 3, 29, 0, 30, tzinfo=UTC))
    Ping.objects.filter(event="success").update(created_at=datetime(2026, 3, 29, 1, 30, 0, 500_000, tzinfo=UTC))
    work()
    first, last = sentry.received.payloads
    assert {**first, **last}["monitor_slug"] == "invoices"
    assert first["check_in_id"] == last["check_in_id"]
    assert (first["status"], last["status"]) == ("in_progress", "ok")
    assert last["duration"] == 3_600.5  # although the clocks have changed meanwhile
    assert {(one["environment"], one["release"]) for one in (first, last)} == {("staging", "r42")}
    assert sentry.received.monitors == {
        "invoices": {
            "schedule": {"type": "crontab", "value": "30 2 * * mon-fri"},
            "timezone": "Europe/Madrid",
            "checkin_margin": 2,
            "max_runtime": 22,
            "failure_issue_threshold": 1,
            "recovery_threshold": 1,
        }
    }


def test_a_run_that_fails_after_its_retries_is_one_check_in(sentry: Sentry) -> None:
    row = SchedulerFactory(rare=True, handler="tests.fail", max_retries=1)
    execution = ManualExecutionFactory(scheduler=row)
    work()
    assert [one["status"] for one in sentry.received.payloads] == ["in_progress"]
    SchedulerExecution.objects.filter(pk=execution.pk).update(wake_at=clock.now() - timedelta(seconds=1))
    work()
    assert [one["status"] for one in sentry.received.payloads] == ["in_progress", "error"]
    assert [*sentry.received.check_ins.values()] == ["error"]
    assert sentry.received.payloads[0]["monitor_slug"] == f"tests-fail-{row.pk}"


def test_a_one_time_schedule_sends_no_configuration(sentry: Sentry) -> None:
    ManualExecutionFactory(scheduler=SchedulerFactory(once=True))
    work()
    assert [one["status"] for one in sentry.received.payloads] == ["in_progress", "ok"]
    assert all("monitor_config" not in one for one in sentry.received.payloads)


def test_a_schedule_without_a_time_limit_gets_the_longest_runtime(sentry: Sentry) -> None:
    """Without a value, Sentry would alert after 30 minutes."""
    ManualExecutionFactory(scheduler=SchedulerFactory(rare=True))
    work()
    (config,) = sentry.received.monitors.values()
    assert config["max_runtime"] == 40_320


def test_both_monitors_are_told_with_one_id(sentry: Sentry, healthchecks: Healthchecks) -> None:
    check = uuid.uuid4()
    ManualExecutionFactory(scheduler=SchedulerFactory(rare=True, ping_url=healthchecks.url(check)))
    work()
    (rid,) = healthchecks.check(check).finished
    assert [*sentry.received.check_ins.items()] == [(uuid.UUID(rid).hex, "ok")]


def test_off_by_default(sentry: Sentry, settings: Any) -> None:
    del settings.CRON_SENTRY_MONITORS
    ManualExecutionFactory(scheduler=SchedulerFactory(rare=True))
    work()
    assert not Ping.objects.exists()


def test_a_service_and_a_run_without_a_schedule_are_not_told(sentry: Sentry) -> None:
    from scheduling.core.messages import TaskMessage
    from scheduling.handlers.run_config import RunConfigs

    service = SchedulerFactory(rare=True, stay_alive=True)
    told = SchedulerFactory(rare=True)

    def pings(schedule: int | None) -> Any:
        message = TaskMessage(
            type="worker", id=told.worker_id, scheduler_id=schedule, params={}, execution_id=1, attempt=1,
            execution_key="x", scheduled_at=clock.now(), trigger="cron", retry_count=0,
        )  # fmt: skip
        return RunConfigs().get(message).pings

    assert pings(told.pk) == ("sentry",)
    assert pings(service.pk) == pings(None) == ()


@pytest.mark.parametrize(("status", "state"), [(429, "waiting"), (503, "waiting"), (403, "dropped"), (413, "dropped")])
def test_an_answer_of_sentry(sentry: Sentry, status: int, state: str) -> None:
    sentry.status = status
    execution = ManualExecutionFactory(scheduler=SchedulerFactory(rare=True))
    work()
    assert SchedulerExecution.objects.get(pk=execution.pk).state == "succeeded"
    end = Ping.objects.get(event="success")
    assert (end.state, end.error.partition(":")[0]) == (state, f"The server answered {status}")
    assert sentry.dsn not in end.error


def test_the_project_s_own_sdk_says_where(sentry: Sentry, monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    monkeypatch.delenv("SENTRY_DSN")
    assert "needs a DSN" in module.problem()
    with sentry_sdk.isolation_scope():
        scope = sentry_sdk.get_global_scope()
        before = scope.client
        own = sentry_sdk.Client(
            dsn=sentry.dsn, environment="blue", release="own-7", default_integrations=False,
            auto_enabling_integrations=False,
        )  # fmt: skip
        scope.set_client(own)
        try:
            assert module.problem() == ""
            ManualExecutionFactory(scheduler=SchedulerFactory(rare=True))
            work()
        finally:
            own.close(timeout=0)
            scope.client = before
    assert {(one["environment"], one["release"]) for one in sentry.received.payloads} == {("blue", "own-7")}


def test_a_dsn_that_cannot_be_read_is_a_warning_of_check(sentry: Sentry, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not [found for found in run_checks(tags=["scheduling"]) if found.id == "scheduling.W005"]
    monkeypatch.setenv("SENTRY_DSN", "http://secret@/nowhere")
    (found,) = [found for found in run_checks(tags=["scheduling"]) if found.id == "scheduling.W005"]
    assert found.msg == "The DSN of Sentry cannot be read: BadDsn."
    ManualExecutionFactory(scheduler=SchedulerFactory(rare=True))
    work()
    assert SchedulerExecution.objects.get().state == "succeeded"
    assert {*Ping.objects.filter(event="success").values_list("error", flat=True)} == {found.msg}
