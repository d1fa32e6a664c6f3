"""The consumer that has recorded the end of a run lets in the one that waits, and pauses a schedule that fails."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone as clock

from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.running import Running
from scheduling.core.outcome import Failed, Outcome, Succeeded
from scheduling.execution.claim import claim_due
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.processes.identity import container_id
from tests.execution.start_world import Consumer
from tests.factories import SchedulerFactory, due

pytestmark = pytest.mark.django_db

FAILED = Failed("builtins.ConnectionError", "it is down", retryable=False)


def ran(consumer: Consumer, outcome: Outcome) -> None:
    """Start the run that waits, and end it."""
    now = clock.now()
    _settled, _taken, (arrival,) = consumer.writer.write([], 1, now)
    assert arrival.started
    run = Running(
        arrival.delivery, consumer.configs.get(arrival.delivery.message), OutputBuffer(1000, None), now, container_id()
    )
    due(Scheduler.objects.get(), now - timedelta(minutes=5))  # an instant of its own has a key of its own
    claim_due(now, embedded=True)
    run.outcome = outcome
    consumer.writer.write([run], 0, clock.now())


def made(**columns: object) -> Scheduler:
    row: Scheduler = SchedulerFactory(schedule="0 0 1 1 *", params={}, **columns)
    due(row, clock.now())
    claim_due(clock.now(), embedded=True)
    return row


@pytest.mark.parametrize("policy", ["wait", "replace"])
@pytest.mark.parametrize("outcome", [Succeeded(), FAILED])
def test_what_waits_is_let_in_without_a_sweep(policy: str, outcome: Outcome) -> None:
    made(overlap=policy)
    ran(Consumer(), outcome)
    states = list(SchedulerExecution.objects.order_by("pk").values_list("state", flat=True))
    ended = "succeeded" if isinstance(outcome, Succeeded) else "failed" if policy == "wait" else "cancelled"
    assert states == [ended, "queued"]


def test_a_schedule_that_fails_is_paused_without_a_sweep() -> None:
    row = made(pause_after_failures=1)
    ran(Consumer(), FAILED)
    row.refresh_from_db()
    last = SchedulerExecution.objects.get(state="failed")
    assert (row.status, row.pause_reason) == (False, f"1 failure; the last is execution {last.pk}.")
