"""A handler with many results and errors. Most of them cannot be sent from the child to the consumer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date
from typing import Any

from pydantic import BaseModel

from scheduling.handlers import RetryPolicy, Run, worker


def _cycle() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


class _ExitsWhenShown:
    def __str__(self) -> str:
        raise SystemExit(3)

    __repr__ = __str__


class _UnshowableError(Exception):
    def __str__(self) -> str:
        raise SystemExit(0)


def _raise() -> None:
    raise _UnshowableError


def _drop_stdout() -> None:
    sys.stdout = None  # type: ignore[assignment]


RETURNS: dict[str, Callable[[], Any]] = {
    "a date as key": lambda: {date(2025, 1, 1): 3},
    "a tuple as key": lambda: {("a", "b"): 1},
    "a cycle": _cycle,
    "a huge number": lambda: 10**5000,
    "a value that exits when shown": lambda: {"a": _ExitsWhenShown()},
    "an exit code that exits when shown": lambda: sys.exit(_ExitsWhenShown()),  # type: ignore[arg-type]
    "an error that exits when shown": _raise,
    "no stdout": _drop_stdout,
    "plain data": lambda: {"rows": [1, 2.5, None]},
}


class ReturnParams(BaseModel):
    """A key of RETURNS."""

    name: str


@worker("tests.return", params=ReturnParams, retry=RetryPolicy(max_retries=0))
def give(params: ReturnParams, run: Run) -> Any:
    """Returns the named result, or raises the named error."""
    return RETURNS[params.name]()
