"""The facts of executions that are the same under `travel` and with processes."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from scheduling.models import Attempt, Output, Scheduler, SchedulerExecution

ROW = (
    "trigger", "requested_by", "type", "target_name", "params", "queue", "state", "attempt", "retry_base", "progress",
    "error_class", "error_message", "fingerprint", "reason", "missed", "cancel_requested_by",
)  # fmt: skip
ROW_INSTANTS = ("published_at", "wake_at", "started_at", "finished_at", "deferred_at")
"""Only whether the row has such an instant is compared, because a process starts a run a moment after it is due."""

ATTEMPT = ("number", "outcome", "exit_code", "signal", "error_class", "error_message", "traceback", "result")


def rows_of(made: int | Scheduler) -> list[dict[str, Any]]:
    """The facts of the execution with this id, or of the executions of a schedule in the order of their instants."""
    own = {"scheduler": made} if isinstance(made, Scheduler) else {"pk": made}
    return [facts_of(row) for row in SchedulerExecution.objects.filter(**own).order_by("scheduled_at", "pk")]


def facts_of(row: SchedulerExecution) -> dict[str, Any]:
    """The facts of one execution, with its attempts, the delays of its retries, and its output."""
    facts = {name: getattr(row, name) for name in ROW}
    facts["reason"] = with_keys(row.reason)
    facts |= {name: getattr(row, name) is not None for name in ROW_INSTANTS}
    attempts = Attempt.objects.filter(execution=row.pk).order_by("number")
    facts["attempts"] = [
        ({name: getattr(attempt, name) for name in ATTEMPT}, waits(attempt), output_of(row.pk, attempt.number))
        for attempt in attempts
    ]
    return facts


def with_keys(reason: str) -> str:
    """A reason that names other executions, by their keys instead of their ids."""

    def key_of(found: re.Match[str]) -> str:
        return f"execution {SchedulerExecution.objects.get(pk=int(found[1])).execution_key}"

    return re.sub(r"execution (\d+)", key_of, reason)


def waits(attempt: Attempt) -> timedelta | None:
    """The delay of the retry that follows the attempt."""
    return None if attempt.retry_at is None else attempt.retry_at - attempt.finished_at


def output_of(execution: int, attempt: int) -> list[str]:
    """The lines of the output without their times."""
    rows = Output.objects.filter(execution_id=execution, attempt=attempt).order_by("sequence")
    return [line.split(" ", 1)[1] for line in "".join(rows.values_list("text", flat=True)).splitlines()]


def forget() -> None:
    """Remove all schedules and executions."""
    for model in (Attempt, Output, SchedulerExecution, Scheduler):
        model.objects.all().delete()
