"""Reports that an execution has failed for good: log lines, and the signal `execution_failed`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

from django.db import transaction

from scheduling.core.events import WORKER
from scheduling.core.messages import iso_utc
from scheduling.core.text import one_line
from scheduling.logs import error_elsewhere, get_logger, short_json
from scheduling.models import Event, SchedulerExecution
from scheduling.processes.execution_signals import send
from scheduling.signals import execution_failed

log = get_logger(__name__)

Details = Callable[[], dict[str, Any]]
"""Makes the fields of a failed task. The function is called only if the log has the level DEBUG."""


@dataclass(frozen=True)
class Failure:
    """An execution that has failed for good. `scheduling.signals` describes the fields, which are its arguments."""

    execution_id: int
    scheduler_id: int | None
    type: str
    target_id: int | None
    target_name: str
    attempts: int
    retry_count: int
    error_class: str
    error_message: str
    reason: str
    failed_at: datetime
    traceback: str = field(default="", repr=False)
    """For `exc_info` of the log line. It is no argument of the signal."""


def failure_of(row: SchedulerExecution) -> Failure:
    """The failure that a row tells of. The row's state is `failed`."""
    return Failure(
        execution_id=row.pk,
        scheduler_id=row.scheduler_id,
        type=row.type,
        target_id=row.target_id,
        target_name=row.target_name,
        attempts=row.attempt,
        retry_count=row.retry_count,
        error_class=row.error_class,
        error_message=row.error_message,
        reason=row.reason,
        failed_at=row.finished_at or row.executed_at,
    )


def report(failure: Failure, details: Details = dict) -> None:
    """Log the failure and send `execution_failed`, as soon as the present transaction is committed.

    A receiver may use the database. Within the transaction, its error could undo the change of the row.

    Args:
        details: makes the fields of the line "Failed task details", which is logged at DEBUG; empty for no such line.
    """
    transaction.on_commit(lambda: _report(failure, details))


def _report(failure: Failure, details: Details) -> None:
    context = {
        "type": failure.type,
        "id": failure.target_id,
        "scheduler_id": failure.scheduler_id,
        "retry_count": failure.retry_count,
        "failed_at": iso_utc(failure.failed_at),
        "execution": failure.execution_id,
        "attempt": failure.attempts,
    }
    error = ": ".join(part for part in (failure.error_class, failure.error_message) if part).rstrip(".")
    raised = error_elsewhere(failure.error_class, failure.error_message, failure.traceback)
    # A project's formatters and mails show no context, so the message names the run, as the lines of its output do.
    run = one_line(f"[{failure.type.capitalize()}:{failure.target_name}:{failure.execution_id}]")
    log.error("PERMANENTLY FAILED TASK: %s (%s) %s", error, failure.reason, run, extra=context, exc_info=raised)
    if log.isEnabledFor(logging.DEBUG):
        with suppress(Exception):  # plain SQL may have written values that no message can hold
            if fields := details():
                log.debug("Failed task details: %s", short_json(fields))
    # The document of the schedule service has names of its own for some facts.
    more = {"scheduled_job_id": failure.execution_id, "last_error": error, **_event_of(failure)}
    facts = {name: value for name, value in asdict(failure).items() if name != "traceback"}
    send(execution_failed, "execution_failed", facts | more, context)


def _event_of(failure: Failure) -> dict[str, Any]:
    """The topic and the metadata of an event; both are empty for another run."""
    found: tuple[Any, Any] | None = None
    if (failure.type, failure.target_name) == ("worker", WORKER):
        with suppress(Exception):  # plain SQL may have written values that cannot be read
            found = Event.objects.filter(pk=failure.execution_id).values_list("topic", "metadata").first()
    topic, metadata = found or ("", {})
    return {"topic": topic, "metadata": metadata}
