"""Inserts the execution of a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from scheduling.execution.own_broker import own_broker
from scheduling.execution.submit import Asked, submit
from scheduling.handlers.params import ParamsInvalid
from scheduling.tasks.framework import framework
from scheduling.tasks.known import find_task
from scheduling.tasks.queues import priority_for, queue_for


def enqueue(task: Any, args: Sequence[Any], kwargs: Mapping[str, Any], now: datetime) -> Any:
    """Insert an execution and return its TaskResult. See `CronBackend.enqueue` for the errors."""
    found = framework()
    known = find_task(task.module_path)
    if known is None:
        raise found.InvalidTask(
            f"The task {task.module_path} is not known: only tasks in the module `tasks` of an installed app can run."
        )
    if known != replace(task, run_after=None, priority=known.priority, queue_name=known.queue_name):
        raise found.InvalidTask(
            f"The task {task.module_path} differs from the one in the module `tasks`: they have different functions, "
            "backends or options."
        )
    result = found.TaskResult(
        task=task, id="", status=found.Status.READY, enqueued_at=now, started_at=None, last_attempted_at=None,
        finished_at=None, args=args, kwargs=kwargs, backend=task.backend, errors=[], worker_ids=[],
    )  # fmt: skip
    params = {"args": result.args, "kwargs": result.kwargs}
    asked = Asked(
        task.module_path, params, task.run_after,
        queue=queue_for(task.queue_name), priority=priority_for(task.priority).value,
    )  # fmt: skip
    try:
        pk, _is_new = submit([asked], own_broker(), now)[0]
    except ParamsInvalid as error:
        raise TypeError(f"{task.module_path}: {error}") from None
    object.__setattr__(result, "id", str(pk))  # as Django's own backends do: the class is frozen
    return result
