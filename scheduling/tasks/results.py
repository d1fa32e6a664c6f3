"""Reads Django's TaskResult from the rows of an execution and its attempts."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from scheduling.core.json_bounds import HIGH
from scheduling.core.lifecycle import OPEN_STATES, State
from scheduling.core.results import decode
from scheduling.handlers.run import Run
from scheduling.models import Attempt, SchedulerExecution
from scheduling.tasks.errors import AttemptEnded
from scheduling.tasks.framework import framework
from scheduling.tasks.known import find_task
from scheduling.tasks.queues import as_enqueued

NO_ERROR = frozenset({Attempt.Outcome.SUCCEEDED.value, *Attempt.UNCOUNTED})
"""The outcomes of attempts that leave no error. After one of the latter, the task is ready again."""


def find_result(result_id: str, alias: str) -> Any:
    """The TaskResult with this id.

    Args:
        alias: the backend that is asked.

    Raises:
        TaskResultDoesNotExist: no execution has this id, or it ran no known task of this backend.
    """
    # int() would also read digits of other scripts, spaces and underscores.
    if result_id.isascii() and result_id.isdigit() and len(result_id) < 20 and int(result_id) <= HIGH:
        row = SchedulerExecution.objects.filter(pk=int(result_id), type="worker").first()
        task = find_task(row.target_name) if row is not None else None
        if row is not None and task is not None and task.backend == alias:
            return _result(row, task)
    raise framework().TaskResultDoesNotExist(result_id)


def result_of_run(run: Run, task: Any) -> Any:
    """The TaskResult of an execution that runs now; None if there is no such execution, as in a unit test."""
    row = SchedulerExecution.objects.filter(pk=run.execution_id, execution_key=run.execution_key).first()
    return None if row is None else _result(row, task)


def finished(result: Any, at: datetime, answer: Mapping[str, Any]) -> Any:
    """A copy of the TaskResult of a running execution, as it will be when its end is recorded.

    Args:
        answer: how the attempt has ended; see `Handler.at_end`. It has succeeded, or has failed without a retry.
    """
    has_succeeded = answer["outcome"] == "succeeded"
    status = framework().Status.SUCCESSFUL if has_succeeded else framework().Status.FAILED
    errors = [] if has_succeeded else [_error(answer["error_class"], answer["message"], answer["traceback"])]
    copy = replace(result, status=status, finished_at=at, errors=[*result.errors, *errors])
    if has_succeeded:
        object.__setattr__(copy, "_return_value", decode(answer["result"]))
    return copy


def _result(row: SchedulerExecution, task: Any) -> Any:
    attempts = list(Attempt.objects.filter(execution=row.pk).order_by("number"))
    state = row.state
    is_running, is_open = state == State.RUNNING, state in OPEN_STATES
    starts = [attempt.started_at for attempt in attempts]
    worker_ids = [attempt.consumer for attempt in attempts]
    if is_running:
        starts.append(row.started_at or row.executed_at)
        worker_ids.append(row.consumer)
    args, kwargs = _arguments(row.params)
    task = as_enqueued(task, row.queue)
    result = framework().TaskResult(
        task=replace(task, run_after=row.scheduled_at) if row.scheduled_at > row.executed_at else task,
        id=str(row.pk),
        status=_status(state),
        enqueued_at=row.executed_at,
        started_at=starts[0] if starts else None,
        last_attempted_at=starts[-1] if starts else None,
        finished_at=None if is_open else row.finished_at,
        args=args,
        kwargs=kwargs,
        backend=task.backend,
        errors=_errors(row, attempts),
        worker_ids=worker_ids,
    )
    if state == State.SUCCEEDED and attempts:
        object.__setattr__(result, "_return_value", decode(attempts[-1].result))
    return result


def _arguments(params: object) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a task; none if plain SQL has written something else."""
    found = params if isinstance(params, dict) else {}
    args, kwargs = found.get("args"), found.get("kwargs")
    return args if isinstance(args, list) else [], kwargs if isinstance(kwargs, dict) else {}


def _status(state: str) -> Any:
    status = framework().Status
    if state in OPEN_STATES:
        return status.RUNNING if state == State.RUNNING else status.READY
    # Django has no status for a run that was cancelled or skipped.
    return status.SUCCESSFUL if state == State.SUCCEEDED else status.FAILED


def _errors(row: SchedulerExecution, attempts: Sequence[Attempt]) -> list[Any]:
    found = [
        _error(attempt.error_class, attempt.error_message, attempt.traceback)
        for attempt in attempts
        if attempt.outcome not in NO_ERROR
    ]
    if not found and _status(row.state) == framework().Status.FAILED:
        found.append(_error(row.error_class, row.error_message or row.reason, ""))  # it ended without an attempt
    return found


def _error(name: str, message: str, traceback: str) -> Any:
    """Django's TaskError. Its class path can be imported if the handler has raised the error."""
    if name and "." not in name:
        is_builtin = isinstance(getattr(builtins, name, None), type)
        path = f"builtins.{name}" if is_builtin else ""
    else:
        path = name
    own = f"{AttemptEnded.__module__}.{AttemptEnded.__qualname__}"
    text = traceback or f"{path or own}: {f'{name}: ' if name and not path else ''}{message}\n"
    return framework().TaskError(exception_class_path=path or own, traceback=text)
