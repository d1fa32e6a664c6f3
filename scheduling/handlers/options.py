"""The options of the decorators that register code: `@worker`, `@report` and `task_options`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Required, TypedDict

from scheduling.core.batch import USUAL_WAIT, Batching, batch_problem
from scheduling.core.breaker import CircuitBreaker
from scheduling.core.retry import RetryPolicy
from scheduling.core.run_limit import Limit
from scheduling.handlers.error_rules import ErrorRules, Errors, RetryIf
from scheduling.handlers.run import Run

When = Callable[[Any, Run], bool | str]
"""A function of the params and the run: True if there is something to do; False or a sentence if there is not."""

RetryOf = Callable[[Mapping[str, Any]], RetryPolicy | None]
"""A function of the params: the retry policy of this run; None if the usual one applies."""

RULES = ("retry_on", "give_up_on", "retry_if")
"""The options that become `Handler.errors`."""

BATCH = ("batch_size", "batch_wait")
"""The options that become `Handler.batch`."""


class HandlerOptions(TypedDict, total=False):
    """What each kind of registered code may say besides its name and its params; see `Handler` and `ErrorRules`."""

    retry: RetryPolicy | None
    time_limit: int | None
    soft_time_limit: float | None
    memory_limit: float | None
    leaves_processes: bool
    queue: str
    priority: str
    permission: str
    title: str
    description: str
    retry_on: Errors
    give_up_on: Errors
    retry_if: RetryIf | None
    when: When | None
    breaker: CircuitBreaker | None
    retry_of: RetryOf | None
    limit: Limit | None


class WorkerOptions(HandlerOptions, total=False):
    """What a worker may say, too. A report always gets a new child process."""

    fresh: bool
    recycle_after: int
    schedule: str


class BatchOptions(WorkerOptions, total=False):
    """What a worker may say whose runs are called together (`core.batch.Batching`)."""

    batch_size: Required[int]
    batch_wait: float


def handler_fields(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options as fields of `Handler`.

    Raises:
        ValueError: `retry_on`, `give_up_on`, `retry_if`, `batch_size` or `batch_wait` cannot be used.
    """
    fields = {name: value for name, value in options.items() if name not in (*RULES, *BATCH)}
    if any(name in options for name in BATCH):
        fields["batch"] = _batching(options)
    return fields | {"errors": ErrorRules.of(**{rule: options[rule] for rule in RULES if rule in options})}


def _batching(options: Mapping[str, Any]) -> Batching:
    if "batch_size" not in options:
        raise ValueError("batch_wait is for a worker with batch_size.")
    size, wait = options["batch_size"], options.get("batch_wait", USUAL_WAIT)
    if problem := batch_problem(size, wait):
        raise ValueError(problem)
    if options.get("when") is not None:
        raise ValueError("when is asked for one run, and batch_size calls several together. Leave one of them out.")
    return Batching(size, wait)


def unknown_option(decorator: str, options: Mapping[str, Any], known: type) -> str:
    """Why the options cannot be used: one is not in the TypedDict `known`; empty if each is."""
    unknown = sorted(options.keys() - known.__annotations__.keys())
    return f"{decorator}() has no argument {', '.join(unknown)}." if unknown else ""
