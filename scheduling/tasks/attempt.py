"""Calls the function of a task in the child of a consumer, and sends Django's signals of its start and its end."""

from __future__ import annotations

import logging
from collections.abc import Coroutine, Mapping
from inspect import iscoroutinefunction
from typing import Any

from django.dispatch import Signal
from django.utils import timezone as clock

from scheduling.core import json_bounds
from scheduling.core.results import encode
from scheduling.handlers.run import Run
from scheduling.tasks.errors import ReturnValueInvalid
from scheduling.tasks.framework import framework
from scheduling.tasks.params import TaskParams

log = logging.getLogger("scheduling.run")


class TaskAttempt:
    """The attempts of one task. A child runs them one after the other.

    Args:
        task: Django's Task.
    """

    def __init__(self, task: Any) -> None:
        self._task = task
        self._run: Run | None = None
        self._result: Any = None
        """The TaskResult at the start of the attempt; None if the rows could not be read."""

    def call(self, params: TaskParams, run: Run) -> Any:
        """Send `task_started`, and call the function.

        Returns:
            The return value as JSON data; of a coroutine function, a coroutine that returns it. The child runs that one
            as the coroutine of each handler.

        Raises:
            ReturnValueInvalid: the return value cannot be stored, so `TaskResult.return_value` could not have it.
            Exception: what the function raises.
        """
        task, args = self._task, list(params.args)
        self._run, self._result = run, self._found(run)
        self._send(framework().task_started, self._result)
        if task.takes_context:
            args.insert(0, framework().TaskContext(task_result=self._result))
        if iscoroutinefunction(task.func):
            return _awaited(task.func(*args, **params.kwargs))
        return _json(task.func(*args, **params.kwargs))

    def end(self, answer: Mapping[str, Any]) -> None:
        """Send `task_finished`, unless the task waits for a further attempt.

        Args:
            answer: see `Handler.at_end`.
        """
        from scheduling.tasks.results import finished

        run, result, self._run, self._result = self._run, self._result, None, None
        if run is None or result is None:  # `when` has left the run out, so the function was not called
            return
        is_final = run.is_last_attempt or not answer.get("retryable", True)
        if answer["outcome"] == "succeeded" or (answer["outcome"] == "failed" and is_final):
            self._send(framework().task_finished, finished(result, clock.now(), answer))

    def _found(self, run: Run) -> Any:
        from scheduling.tasks.results import result_of_run

        try:
            return result_of_run(run, self._task)
        except Exception:
            if self._task.takes_context:
                raise
            log.exception("The signals of the task are not sent, because its execution cannot be read")
            return None

    def _send(self, signal: Signal, result: Any) -> None:
        """Send a signal. An error of a receiver is logged, and changes nothing."""
        if result is not None:
            signal.send_robust(type(self._task.get_backend()), task_result=result)


async def _awaited(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return _json(await coroutine)


def _json(returned: Any) -> Any:
    try:
        value = framework().normalize_json(returned)
        encode(value)
    except json_bounds.NotStorable as error:
        raise ReturnValueInvalid(f"The return value {error}") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ReturnValueInvalid(f"The return value is not JSON: {error}") from None
    return value
