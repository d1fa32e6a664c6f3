"""Checks the function of a worker when it is registered."""

from __future__ import annotations

import inspect
from typing import Any, get_type_hints

from scheduling.handlers.batch_run import BatchRun
from scheduling.handlers.run import Run


def function_problem(function: Any, *, is_batch: bool) -> str:
    """Why the function cannot be the function of a worker, as the rest of a sentence; empty if it can.

    Args:
        is_batch: whether one call gets the params of many runs.
    """
    first, wanted, other = ("batch", BatchRun, Run) if is_batch else ("params", Run, BatchRun)
    try:
        inspect.signature(function).bind(object(), object())
    except TypeError:
        return f"must accept two arguments: ({first}, run)."
    if _run_type(function) is other:
        with_or_without = "With" if is_batch else "Without"
        return (
            f"takes a {other.__name__}. {with_or_without} batch_size, its two arguments are ({first}, run), and run is "
            f"a {wanted.__name__}."
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return "contains `yield`, so a call of it would run nothing."
    return ""


def _run_type(function: Any) -> Any:
    """The annotation of the second argument; None if there is none, or if it cannot be read."""
    try:
        return get_type_hints(function).get([*inspect.signature(function).parameters][1])
    except Exception:  # for example, a name that is imported for type checkers only
        return None
