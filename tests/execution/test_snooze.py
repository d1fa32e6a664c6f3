"""A snooze uses up no retry and is counted on its own. It ends by a cancel, and after many snoozes."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.core.outcome import Failed, Snoozed
from scheduling.core.snooze import MOST_SNOOZES
from scheduling.execution.run_now import requeue_failed
from scheduling.models import SchedulerExecution
from scheduling.models.execution import message_of
from tests.execution.services import attempt, first_run, service
from tests.factories import ManualExecutionFactory

pytestmark = pytest.mark.django_db

NOT_YET = Snoozed("the file is not there yet", timedelta(minutes=5))


def test_a_snooze_uses_up_no_retry() -> None:
    run, now = ManualExecutionFactory(), clock.now()
    for _ in range(3):
        attempt(run, NOT_YET, now=now, is_service=False)
    assert (run.state, run.attempt, run.snoozes, run.retry_count) == ("queued", 3, 3, 0)
    assert run.wake_at == now + timedelta(minutes=5)
    assert (run.reason, run.error_class, run.deferred_at) == ("the file is not there yet", "", None)
    assert message_of(run).retry_count == 0
    failed = attempt(run, Failed("ValueError", "no"), is_service=False)
    assert failed.retry is not None
    assert failed.retry.number == 1
    assert run.snoozes == 3


def test_a_snooze_that_never_ends_comes_to_the_failed_inbox_and_a_republish_counts_anew() -> None:
    run = ManualExecutionFactory(snoozes=MOST_SNOOZES - 1)
    attempt(run, NOT_YET, is_service=False)
    assert (run.state, run.snoozes) == ("queued", MOST_SNOOZES)
    attempt(run, NOT_YET, is_service=False)
    assert (run.state, run.error_class) == ("failed", "TooManySnoozes")
    assert "the file is not there yet" in run.error_message
    assert requeue_failed(run.pk, DatabaseBroker(), "Republished.", clock.now(), schedule=None)
    attempt(run, NOT_YET, is_service=False)
    assert (run.state, run.snoozes) == ("queued", 1)


def test_a_cancel_takes_precedence() -> None:
    run = ManualExecutionFactory(cancel_requested_by="ann")
    attempt(run, NOT_YET, is_service=False)
    assert (run.state, run.reason) == ("cancelled", "Cancelled by ann.")


def test_a_service_may_snooze_as_often_as_it_likes() -> None:
    run = first_run(service())
    SchedulerExecution.objects.filter(pk=run.pk).update(snoozes=MOST_SNOOZES)
    result = attempt(run, NOT_YET)
    assert (run.state, result.retry) == ("queued", None)


def test_the_page_of_a_run_says_why_and_how_often_it_has_snoozed(admin_client: Client) -> None:
    run = ManualExecutionFactory()
    attempt(run, NOT_YET, is_service=False)
    page = admin_client.get(reverse("admin:scheduling_schedulerexecution_change", args=[run.pk])).content.decode()
    assert "1 time; its handler was not ready" in page
    assert "the file is not there yet It is offered to the consumers again" in " ".join(page.split())
    SchedulerExecution.objects.filter(pk=run.pk).update(snoozes=2)
    page = admin_client.get(reverse("admin:scheduling_schedulerexecution_change", args=[run.pk])).content.decode()
    assert "2 times; its handler was not ready" in page
