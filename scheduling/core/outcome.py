"""How an attempt can end: every way has a type, and so no end is silent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


class RetryableError(Exception):
    """Raised by a handler: try again, after `retry_after` seconds if given, else as the policy says."""

    def __init__(self, message: str = "The handler asks for a retry.", *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class NonRetryableError(Exception):
    """Raised by a handler: a retry cannot help; park it in the failed inbox at once."""


@dataclass(frozen=True)
class Succeeded:
    """The handler returned."""

    name: ClassVar[str] = "succeeded"
    result: Any = None


@dataclass(frozen=True)
class Failed:
    """The handler raised, or could not be called."""

    name: ClassVar[str] = "failed"
    error_class: str
    message: str
    traceback: str = ""
    retryable: bool = True
    retry_after_ms: int | None = None


@dataclass(frozen=True)
class TimedOut:
    """The attempt outlived its time limit (seconds) and was ended."""

    name: ClassVar[str] = "timed_out"
    limit: float
    exit_code: int | None = None
    signal: int | None = None

    error_class: ClassVar[str] = "TimedOut"
    traceback: ClassVar[str] = ""

    @property
    def message(self) -> str:
        """One sentence for operators."""
        return f"It ran longer than its time limit of {self.limit:g} s and was ended."


@dataclass(frozen=True)
class Crashed:
    """The process ended without a word: an exit code, a signal, or a lease that ran out (`lost`)."""

    name: ClassVar[str] = "crashed"
    exit_code: int | None = None
    signal: int | None = None
    lost: bool = False
    detail: str = ""

    error_class: ClassVar[str] = "Crashed"
    traceback: ClassVar[str] = ""

    @property
    def message(self) -> str:
        """One sentence for operators."""
        if self.detail:
            return self.detail
        if self.lost:
            return "Its consumer stopped renewing the lease: the process or its machine died or lost the database."
        if self.signal is not None:
            return f"The child process was ended by signal {self.signal}{_signal_hint(self.signal)}."
        return f"The child process exited with code {self.exit_code} before the handler returned."


def _signal_hint(number: int) -> str:
    names = {6: " (abort)", 9: " (KILL; often the kernel, out of memory)", 11: " (segmentation fault)", 15: " (TERM)"}
    return names.get(number, "")


@dataclass(frozen=True)
class Cancelled:
    """An operator cancelled it."""

    name: ClassVar[str] = "cancelled"
    by: str = ""
    exit_code: int | None = None
    signal: int | None = None

    error_class: ClassVar[str] = "Cancelled"
    traceback: ClassVar[str] = ""

    @property
    def message(self) -> str:
        """One sentence for operators."""
        return f"Cancelled by {self.by}." if self.by else "Cancelled."


@dataclass(frozen=True)
class Interrupted:
    """The consumer shut down before the attempt was over: given back, not counted."""

    name: ClassVar[str] = "interrupted"
    exit_code: int | None = None
    signal: int | None = None

    error_class: ClassVar[str] = "Interrupted"
    traceback: ClassVar[str] = ""
    message: ClassVar[str] = "The consumer was shut down; the run is given back and this attempt does not count."


Outcome = Succeeded | Failed | TimedOut | Crashed | Cancelled | Interrupted
"""Any end of an attempt."""
