"""Helpers for tests of the failed inbox: they choose an action, confirm the action and read the rows."""

from __future__ import annotations

from typing import Any

from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.core.outcome import Outcome
from scheduling.core.retry import RetryPolicy
from scheduling.models import SchedulerExecution
from scheduling.producer.sweeps import sweep
from tests.contract.desk import Desk
from tests.factories import FailedExecutionFactory

LIST = reverse("admin:scheduling_failedexecution_changelist")


def ask(client: Client, action: str, rows: list[Any], address: str = LIST, across: bool = False) -> Any:
    """Post an action as the list's form does. Return the confirmation page.

    Args:
        across: whether the action applies to all rows that match the filter.
    """
    data = {
        "action": action,
        "_selected_action": [row.pk for row in rows],
        "index": "0",
        "select_across": str(int(across)),
    }
    return client.post(address, data, follow=True)


def confirm(client: Client, page: Any, address: str = LIST, **more: Any) -> Any:
    """Post the form of the confirmation page. `more` holds the values that the user types."""
    data: dict[str, Any] = {}
    for name, value in page.context["c"].hidden:
        data.setdefault(name, []).append(value)
    return client.post(address, {**data, **more}, follow=True)


def states(*rows: Any) -> list[str]:
    """Return the rows' states as the database has them now."""
    found = dict(SchedulerExecution.objects.values_list("pk", "state"))
    return [found[row.pk] for row in rows]


def shown_rows(client: Client, query: str = "") -> set[int]:
    """Return the primary keys of the rows that the list shows."""
    return {row.pk for row in client.get(f"{LIST}?{query}").context["cl"].result_list}


def fill(count: int, **columns: Any) -> list[int]:
    """Store `count` failed executions of one schedule.

    Returns:
        the primary keys of all executions with the same target, including the new executions.
    """
    first = FailedExecutionFactory(**columns)
    rows = [
        SchedulerExecution(
            scheduler=first.scheduler, execution_key=f"bulk-{first.pk}-{number}", scheduled_at=first.scheduled_at,
            trigger="cron", type=first.type, target_id=first.target_id, target_name=first.target_name,
            executed_at=first.executed_at, container_id="x", state="failed", attempt=4, error_class=first.error_class,
            error_message=first.error_message, fingerprint=first.fingerprint, finished_at=first.finished_at,
        )
        for number in range(count - 1)
    ]  # fmt: skip
    SchedulerExecution.objects.bulk_create(rows, batch_size=500)
    return list(SchedulerExecution.objects.filter(target_name=first.target_name).values_list("pk", flat=True))


def end_canary(outcome: Outcome) -> None:
    """Let the canary end with this outcome, as in a consumer. Then sweep, as a producer does."""
    broker = DatabaseBroker()
    Desk(broker).run(outcome, RetryPolicy(max_retries=0))
    sweep(broker, clock.now())
