"""A batch of the invented installation: one call with several runs, one of which has failed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.urls import reverse

from scheduling.models import Attempt, Output, Scheduler, SchedulerExecution
from tests.factories import AttemptFactory, SchedulerExecutionFactory

RUNS, LEAD = 9, "The batch calls the bank with {} payments"


def store_batch(schedule: Scheduler, consumer: str, now: datetime) -> None:
    """Store the runs of one batch. The third one has failed and waits in the inbox."""
    began = now - timedelta(minutes=95)
    times: dict[str, Any] = {"scheduled_at": began, "executed_at": began, "published_at": began, "started_at": began}
    ended = began + timedelta(seconds=3)
    link: dict[str, Any] = {}
    for number in range(RUNS):
        failed = number == 2
        run: SchedulerExecution = SchedulerExecutionFactory(
            failed=failed, succeeded=not failed, scheduler=None, target_id=schedule.worker_id, type="worker",
            target_name=schedule.worker.name if schedule.worker else "", execution_key=f"code-batch-{number}",
            trigger="code", consumer=consumer, params={"order": 4711 + number}, finished_at=ended, **times,
        )  # fmt: skip
        link = link or {"batch_leader": run.pk, "batch_attempt": run.attempt, "batch_size": RUNS}
        error = {"error_class": "shop.Declined", "error_message": "The card has expired."} if failed else {}
        AttemptFactory(
            execution=run, number=run.attempt, outcome="failed" if failed else "succeeded", started_at=began,
            finished_at=ended, consumer=consumer, **error, **link,
        )  # fmt: skip
    lines = [f"{LEAD.format(RUNS)}", "8 payments are done", "1 payment was declined: the card has expired"]
    text = "".join(f"{began:%Y-%m-%dT%H:%M:%S}.{100 * n:03d}Z INFO {line}\n" for n, line in enumerate(lines))
    Output.objects.create(
        execution_id=link["batch_leader"], attempt=link["batch_attempt"], sequence=0, text=text, created_at=ended
    )


def batch_pages() -> tuple[str, str]:
    """The addresses of the run that has led the batch, and of another one."""
    found = Attempt.objects.filter(batch_size=RUNS).order_by("pk").values_list("execution", flat=True)
    first, second = (reverse("admin:scheduling_schedulerexecution_change", args=[pk]) for pk in list(found)[:2])
    return first, second
