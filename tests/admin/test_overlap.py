"""The pages say why a schedule that runs alone was not started."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.admin.executions.why import why
from scheduling.core.health import Health
from scheduling.execution.claim import claim_due
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.health import health_of, with_health
from tests.admin.conftest import said
from tests.admin.inbox import ask, confirm
from tests.admin.pages import page_of, run_address
from tests.factories import ManualExecutionFactory, SchedulerExecutionFactory, SchedulerFactory, due

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


@pytest.fixture
def row() -> Scheduler:
    """A schedule that runs alone and has a queued execution."""
    made: Scheduler = SchedulerFactory(schedule="0 * * * *", overlap="skip", params={})
    SchedulerExecutionFactory(scheduler=made, state="queued", type="worker", target_id=made.worker_id)
    return made


@pytest.fixture
def reason(row: Scheduler) -> str:
    return f"Left out, because execution {row.executions.get().pk} was not over."


def test_run_now_warns_first_and_then_says_why_nothing_ran(operator: Client, row: Scheduler, reason: str) -> None:
    page = operator.get(run_address(row))
    assert f"It would not start now. {reason}" in page.content.decode()
    (hidden,) = page.context["c"].hidden
    (message,) = said(operator.post(run_address(row), dict([hidden]), follow=True))
    assert message.endswith(reason)
    assert row.executions.filter(state="skipped", requested_by="operator").count() == 1


def test_run_again_warns_first_and_then_says_why_nothing_ran(operator: Client, row: Scheduler, reason: str) -> None:
    earlier = SchedulerExecutionFactory(scheduler=row, succeeded=True, type="worker", target_id=row.worker_id)
    page = operator.get(page_of(earlier, "rerun"))
    assert f"It would not start now. {reason}" in page.content.decode()
    response = operator.post(page_of(earlier, "rerun"), dict(page.context["c"].hidden), follow=True)
    assert said(response) == [f"Not run: {reason}"]


def test_republish_says_why_the_execution_stays_in_the_inbox(operator: Client, row: Scheduler, reason: str) -> None:
    failed = SchedulerExecutionFactory(scheduler=row, failed=True, type="worker", target_id=row.worker_id)
    address = reverse("admin:scheduling_failedexecution_republish", args=[failed.pk])
    hidden = dict(operator.get(address).context["c"].hidden)
    assert said(operator.post(address, hidden, follow=True)) == [f"Not republished: {reason}"]
    messages = said(confirm(operator, ask(operator, "republish_selected", [failed])))
    assert "not over" in " ".join(messages)
    failed.refresh_from_db()
    assert failed.state == "failed"


def test_a_row_that_counts_for_long_is_found_although_many_runs_followed(viewer: Client) -> None:
    now = clock.now().replace(minute=0, second=0, microsecond=0)
    row = SchedulerFactory(schedule="0 * * * *", overlap="skip", params={})
    for number in (6, 5):
        due(row, now - number * HOUR)
        claim_due(now - number * HOUR, embedded=True)
    ManualExecutionFactory.bulk(300, executed_at=now - 4 * HOUR)
    due(row, now - 3 * HOUR)
    claim_due(now - 3 * HOUR, embedded=True)
    address = reverse("admin:scheduling_scheduler_why", args=[row.pk])
    (answer,) = viewer.get(address, {"at": f"{now - 3 * HOUR:%Y-%m-%d %H:%M}"}).context["why_at"]["answers"]
    assert answer["address"] == page_of(SchedulerExecution.objects.get(state="skipped"))


def test_what_was_left_out_is_counted_and_says_nothing_about_the_health(viewer: Client) -> None:
    now = clock.now().replace(minute=0, second=0, microsecond=0)
    row = SchedulerFactory(schedule="0 * * * *", overlap="skip", params={})
    for number in (4, 3, 2):
        due(row, now - number * HOUR)
        claim_due(now - number * HOUR, embedded=True)
    skip = SchedulerExecution.objects.get(state="skipped")
    assert "This execution stands for 2 occurrences, the last one at " in " ".join(why(skip, now))
    address = reverse("admin:scheduling_scheduler_why", args=[row.pk])
    typed = f"{now - 2 * HOUR:%Y-%m-%d %H:%M}"
    (answer,) = viewer.get(address, {"at": typed}).context["why_at"]["answers"]
    assert answer["address"] == page_of(skip)
    SchedulerExecution.objects.filter(state="queued").update(state="succeeded")
    due(row, now + HOUR)
    (ranked,) = with_health(Scheduler.objects.all(), now)
    assert health_of(ranked) == Health.HEALTHY
