"""The options of a task that Django's decorator `@task` does not have: attempts, delays, limits, errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar, Unpack

from scheduling.core.backoff import Backoff, seconds_of
from scheduling.core.retry import DELAY_MS, MAX_RETRIES, RetryPolicy, RetryPolicyInvalid
from scheduling.handlers.limits import limits_problem
from scheduling.handlers.options import WorkerOptions, handler_fields, unknown_option

Function = TypeVar("Function", bound=Callable[..., Any])

OWN = ("max_attempts", "backoff")
"""The options that only tasks have. They become `Handler.retry`."""

ATTRIBUTE = "_scheduling_task_options"
"""The attribute of a function that holds what `task_options` was given."""

BACKEND_OPTIONS = ("backoff", "max_attempts", "time_limit")
"""The options that a backend has, too, in its OPTIONS. They apply to tasks that do not set them."""


class TaskOptions(WorkerOptions, total=False):
    """What a task may set; see `task_options`."""

    max_attempts: int
    backoff: float | timedelta | Backoff


def task_options(**options: Unpack[TaskOptions]) -> Callable[[Function], Function]:
    """Set options of a task. The decorator stands below `@task`.

    Args:
        max_attempts: from 1 to 20; 1 means no retry.
        backoff: seconds or timedelta before the first retry. The retry policy of the settings decides how the delay
            grows. Or how the delays grow, as `RetryPolicy.backoff`: a name, a list, or a function.
        options: those of `scheduling.handlers.worker`, with the same meaning. `retry` takes the place of `max_attempts`
            and `backoff`. The params of the function `when` have the arguments of the task in `args` and `kwargs`.

    Raises:
        TypeError: there is no such option.
        ValueError: a value is out of bounds.
    """
    if problem := unknown_option("task_options", options, TaskOptions):
        raise TypeError(problem)
    if "retry" in options and not options.keys().isdisjoint(OWN):
        raise ValueError("task_options() takes either retry, or max_attempts and backoff.")
    handler_options(options, RetryPolicy())

    def decorate(function: Function) -> Function:
        setattr(function, ATTRIBUTE, dict(options))
        return function

    return decorate


def options_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The options that `task_options` has set for a function."""
    found: dict[str, Any] = getattr(function, ATTRIBUTE, {})
    return found


def handler_options(options: Mapping[str, Any], usual: RetryPolicy) -> dict[str, Any]:
    """The options as fields of `scheduling.handlers.Handler`.

    Args:
        usual: the retry policy whose other values stay.

    Raises:
        ValueError: a value is out of bounds.
    """
    found = handler_fields({name: value for name, value in options.items() if name not in OWN})
    limit = options.get("time_limit")
    if limit is not None and (type(limit) is not int or limit < 0):
        raise ValueError(f"time_limit is a whole number of seconds, at least 0, not {limit!r}.")
    if problem := limits_problem(limit, options.get("soft_time_limit"), options.get("memory_limit")):
        raise ValueError(problem)
    given = found.pop("retry", None)
    return found | {"retry": _retry(options, usual) if given is None else given}


def _retry(options: Mapping[str, Any], usual: RetryPolicy) -> RetryPolicy | None:
    changes: dict[str, Any] = {}
    most = options.get("max_attempts")
    if most is not None:
        low, high = (retries + 1 for retries in MAX_RETRIES)
        if type(most) is not int or not low <= most <= high:
            raise ValueError(f"max_attempts is a whole number from {low} to {high}, not {most!r}.")
        changes["max_retries"] = most - 1
    if (backoff := options.get("backoff")) is not None:
        changes |= _delays(backoff, usual)
    try:
        policy = replace(usual, **changes) if changes else None
    except RetryPolicyInvalid as error:
        raise ValueError(f"backoff: {error}") from None
    if policy is not None and policy.problem:
        raise ValueError(policy.problem)
    return policy


def _delays(backoff: object, usual: RetryPolicy) -> dict[str, Any]:
    """The fields of a retry policy that a backoff sets. Any value that is no number is left to `RetryPolicy`.

    Raises:
        ValueError: a number is NaN or infinite.
    """
    if (seconds := seconds_of(backoff)) is None:
        # Each delay of a list or a function is meant as it is, so the longest delay of the settings does not cut it.
        return {"backoff": backoff} | ({} if isinstance(backoff, str) else {"max_delay_ms": DELAY_MS[1]})
    try:
        delay = round(seconds * 1000)
    except (ValueError, OverflowError):  # NaN and infinity
        raise ValueError(f"backoff is a number of seconds or a timedelta, not {backoff!r}.") from None
    return {"delay_ms": delay, "max_delay_ms": max(delay, usual.max_delay_ms)}
