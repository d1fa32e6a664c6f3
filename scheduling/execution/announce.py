"""Logs the outcome of an attempt, and reports a permanent failure."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from scheduling.conf import own_logging
from scheduling.core.lifecycle import State
from scheduling.core.messages import FailedMessage, TaskMessage
from scheduling.core.outcome import Deferred, FailedProbe, Snoozed, signal_name
from scheduling.core.text import clean
from scheduling.execution.settle import Settled
from scheduling.handlers.secret_params import masked
from scheduling.handlers.targets import handler_of_execution
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.models.execution import message_of
from scheduling.processes.execution_signals import send_left_out, send_succeeded
from scheduling.processes.failure_report import Failure, failure_of, report

log = get_logger(__name__)

TRACE_LENGTH = 8_000
"""How many characters of a stack trace are logged. The page of the run shows more."""


def announce(settled: Settled, message: TaskMessage, name: str) -> None:
    """Log the outcome. After a permanent failure, also report it.

    Args:
        name: the name of the target.
    """
    ended = settled.ended
    context = {"type": message.type, "id": message.id, "scheduler_id": message.scheduler_id}
    attempt = {"execution": ended.execution_id, "attempt": ended.attempt}
    lasted = {"duration": f"{max(0, (settled.at - ended.started_at) // timedelta(milliseconds=1))}ms"}
    if settled.state is None:
        text = "Result dropped (%s): another process owns this execution by now"
        log.warning(text, settled.outcome.name, extra=context | attempt)
    elif settled.state is State.SUCCEEDED:
        log.success("Task completed", extra=context | lasted | _exit(settled) | attempt)
        send_succeeded(message, name, settled.at)
    elif settled.state is State.CANCELLED:
        log.warning("Task cancelled", extra=context | lasted | attempt)
    elif settled.state is State.SKIPPED:
        log.info("Task skipped: %s", settled.reason, extra=context | lasted | attempt)
        send_left_out(message, name, settled.reason, settled.at)
    elif settled.state in (State.QUEUED, State.CLAIMED):
        _waits_again(settled, context | lasted | attempt)
    elif settled.retry is not None and settled.max_retries is None:
        log.warning("Service ended: %s", _error(settled), extra=context | lasted | _exit(settled) | attempt)
        number, delay = settled.retry.number, settled.retry.delay_ms
        log.warning("Starting the service again in %sms (restart %s)", delay, number, extra=context | attempt)
    else:
        trace = {"stack_trace": clean(getattr(settled.outcome, "traceback", "").rstrip(), TRACE_LENGTH)}
        # A project's handlers of errors shall be called once for a failure: by the line PERMANENTLY FAILED TASK.
        write = log.error if settled.retry is None and own_logging() else log.warning
        text, facts = "Task execution failed: %s", context | lasted | _exit(settled) | attempt | trace
        write(text, _error(settled), extra=facts)
        if settled.retry is not None:
            number, most, delay = settled.retry.number, settled.max_retries, settled.retry.delay_ms
            log.warning("Scheduling retry %s/%s in %sms", number, most, delay, extra=context | attempt)
        else:
            _report(settled, message, name)


def _error(settled: Settled) -> str:
    """The error without characters that a handler of the project's logging may be unable to write."""
    return clean(settled.error.rstrip("."), TRACE_LENGTH)


def _waits_again(settled: Settled, context: dict[str, Any]) -> None:
    match settled.outcome:
        case Deferred(reason=reason):
            log.warning("Task put off: %s", reason, extra=context)
        case FailedProbe():
            log.warning("Probe failed: %s", _error(settled), extra=context)
        case Snoozed(reason=reason, wait=wait):
            log.info("Task snoozed for %ss: %s", f"{wait.total_seconds():g}", reason, extra=context)
        case _:
            log.warning("Task given back: the consumer is shutting down", extra=context)


def _report(settled: Settled, message: TaskMessage, name: str) -> None:
    ended, outcome = settled.ended, settled.outcome
    failure = Failure(
        execution_id=ended.execution_id,
        scheduler_id=message.scheduler_id,
        type=message.type,
        target_id=message.id,
        target_name=name,
        attempts=ended.attempt,
        retry_count=settled.retries,
        error_class=clean(getattr(outcome, "error_class", ""), TRACE_LENGTH),
        error_message=clean(getattr(outcome, "message", ""), TRACE_LENGTH),
        reason=settled.reason,
        failed_at=settled.at,
        traceback=clean(getattr(outcome, "traceback", "").rstrip(), TRACE_LENGTH),
    )
    row = SchedulerExecution(type=message.type, target_name=name)
    report(failure, lambda: _details(row, FailedMessage(message, settled.at, settled.error, settled.retries)))


def report_row(row: SchedulerExecution) -> None:
    """Report an execution that failed without an attempt, for example because its message was never delivered."""
    error = f"{row.error_class}: {row.error_message}"
    failure = failure_of(row)
    report(failure, lambda: _details(row, FailedMessage(message_of(row), failure.failed_at, error, row.retry_count)))


def _details(row: SchedulerExecution, failed: FailedMessage) -> dict[str, Any]:
    """The fields of a message in the failed queue, with masked secrets. The parameters are not packed as text."""
    payload = failed.payload()
    params = {"params_scheduler": masked(handler_of_execution(row), failed.task.params)}
    return {name: params.get(name, value) for name, value in payload.items()}


def _exit(settled: Settled) -> dict[str, Any]:
    """The exit code or the signal of the attempt's process, if it is known."""
    outcome = settled.outcome
    if outcome.signal is not None:
        return {"signal": signal_name(outcome.signal)}
    return {} if outcome.exit_code is None else {"exit_code": outcome.exit_code}
