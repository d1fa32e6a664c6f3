"""Turns SIGTERM into an exception in a running handler, so that the handler's `finally` blocks run."""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal.signal takes three times as long: it makes enums
from collections.abc import Callable
from types import FrameType


class Terminated(BaseException):
    """SIGTERM has arrived while a handler ran."""


def terminable(on: bool) -> None:
    """Raise `Terminated` at SIGTERM from now on, or end the process at SIGTERM."""
    _signal.signal(_signal.SIGTERM, _raise_terminated if on else _signal.SIG_DFL)


def on_terminate(call: Callable[[int, FrameType | None], None]) -> None:
    """Call a function at the next SIGTERM, instead of raising `Terminated`."""

    def called(number: int, frame: FrameType | None) -> None:
        _ignore()
        call(number, frame)

    _signal.signal(_signal.SIGTERM, called)


def _ignore() -> None:
    _signal.signal(_signal.SIGTERM, _signal.SIG_IGN)  # a second SIGTERM must not interrupt the clean-up


def _raise_terminated(_number: int, _frame: FrameType | None) -> None:
    _ignore()
    raise Terminated
