"""Defines one class for each outcome of an attempt, and the errors with which a handler controls its retries."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from scheduling.core import run_sentences as say
from scheduling.core.backoff import seconds_of

PROGRESS_LENGTH = 64
"""The maximum length of a text that says how far a run is, in characters."""


class RetryableError(Exception):
    """A handler raises this error to ask for a retry.

    Args:
        retry_after: the delay before the retry, as a number of seconds or a timedelta; None means the delay of the
            retry policy. The attribute `retry_after` is a number of seconds or None.

    Raises:
        TypeError: `retry_after` has another type.
    """

    def __init__(
        self, message: str = say.ASKS_FOR_RETRY.format(), *, retry_after: float | timedelta | None = None
    ) -> None:
        super().__init__(message)
        self.retry_after = seconds_of(retry_after)
        if self.retry_after is None and retry_after is not None:
            raise TypeError(f"retry_after is a number of seconds or a timedelta, not {retry_after!r}.")


class NonRetryableError(Exception):
    """A handler raises this error when a retry cannot help. The execution goes to the failed inbox at once."""


class SoftTimeLimit(BaseException):
    """A run has reached its soft time limit. It is raised in the handler, which may catch it to end in good order.

    It is no `Exception`, so that `except Exception` in a loop does not swallow it.
    """

    def __init__(self, seconds: float = 0) -> None:
        super().__init__(say.SOFT_TIME_LIMIT.format(limit=f"{seconds:g}"))


@dataclass(frozen=True)
class Succeeded:
    """The handler returned. Its process may go on with another run, so the exit code is that of a process that ends.

    Args:
        result: what the handler has returned, as JSON; empty if there is nothing to store.
    """

    name: ClassVar[str] = "succeeded"
    signal: ClassVar[int | None] = None
    result: str = ""
    exit_code: int | None = 0


@dataclass(frozen=True)
class Failed:
    """The handler raised an exception, or the handler could not be called.

    Args:
        exit_code: 1, as for a program that an exception has ended; the code of `sys.exit`, if the handler called it.
        called: whether the handler was called. If not, the code of the consumer does not know the handler, or its
            params model refuses the params.
    """

    name: ClassVar[str] = "failed"
    signal: ClassVar[int | None] = None
    result: ClassVar[str] = ""
    error_class: str
    message: str
    traceback: str = ""
    retryable: bool = True
    retry_after_ms: int | None = None
    exit_code: int | None = 1
    called: bool = True


@dataclass(frozen=True, kw_only=True)
class ProcessEnded:
    """Base class of the outcomes that the handler does not report.

    Args:
        exit_code: the exit code of the child, if known.
        signal: the number of the signal that ended the child, if known.
    """

    exit_code: int | None = None
    signal: int | None = None
    traceback: ClassVar[str] = ""
    result: ClassVar[str] = ""


@dataclass(frozen=True)
class TimedOut(ProcessEnded):
    """The attempt ran longer than its time limit (`limit`, in seconds) and was ended."""

    name: ClassVar[str] = "timed_out"
    error_class: ClassVar[str] = "TimedOut"
    limit: float

    @property
    def message(self) -> str:
        """One sentence for operators."""
        return say.TIMED_OUT.format(limit=f"{self.limit:g}")


@dataclass(frozen=True)
class MemoryLimit(ProcessEnded):
    """The processes of the attempt used more memory than its limit and were ended. `limit` and `used` are in MiB."""

    name: ClassVar[str] = "failed"
    error_class: ClassVar[str] = "MemoryLimit"
    limit: float
    used: float

    @property
    def message(self) -> str:
        """One sentence for operators."""
        return say.MEMORY_LIMIT.format(used=f"{self.used:.0f}", limit=f"{self.limit:g}")


@dataclass(frozen=True)
class Crashed(ProcessEnded):
    """The attempt ended without a report: the child exited, a signal ended the child, or the lease ran out (`lost`)."""

    name: ClassVar[str] = "crashed"
    error_class: ClassVar[str] = "Crashed"
    lost: bool = False
    detail: str = ""

    @property
    def message(self) -> str:
        """One sentence for operators."""
        if self.detail:
            return self.detail
        if self.lost:
            return say.LOST.format()
        if self.signal is not None:
            known = say.SIGNALS.get(self.signal)
            return say.ENDED_BY_SIGNAL.format(signal=known.format() if known is not None else self.signal)
        return say.EXITED.format(code=self.exit_code)


def signal_name(number: int) -> str:
    """The name of a signal, such as `SIGKILL`; the number itself if the signal has no name, such as a real-time one."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


@dataclass(frozen=True)
class Cancelled(ProcessEnded):
    """An operator cancelled the execution."""

    name: ClassVar[str] = "cancelled"
    error_class: ClassVar[str] = "Cancelled"
    by: str = ""

    @property
    def message(self) -> str:
        """One sentence for operators."""
        return say.CANCELLED_BY.format(by=self.by) if self.by else say.CANCELLED.format()


@dataclass(frozen=True)
class Interrupted(ProcessEnded):
    """The consumer shut down during the attempt. The execution waits again, and the attempt does not use up a retry."""

    name: ClassVar[str] = "interrupted"
    error_class: ClassVar[str] = "Interrupted"
    message: ClassVar[str] = say.INTERRUPTED.format()


@dataclass(frozen=True)
class Deferred(ProcessEnded):
    """The code of the consumer cannot run the attempt, but that of another consumer may (`core.deferral`).

    The handler was not called. The execution waits again, and the attempt does not use up a retry.

    Args:
        reason: one sentence for operators that says for whom the execution waits.
        asked_at: when the execution was first put off.
        wait: how long the execution waits until it is offered again.
    """

    name: ClassVar[str] = "interrupted"
    error_class: ClassVar[str] = "Deferred"
    reason: str
    asked_at: datetime
    wait: timedelta

    @property
    def message(self) -> str:
        """One sentence for operators."""
        return self.reason


@dataclass(frozen=True)
class Snoozed:
    """The handler is not ready (`core.snooze`). The execution waits again, and the attempt does not use up a retry.

    Args:
        reason: a sentence of the handler for operators.
        wait: how long the execution waits.
    """

    name: ClassVar[str] = "snoozed"
    signal: ClassVar[int | None] = None
    error_class: ClassVar[str] = ""
    traceback: ClassVar[str] = ""
    result: ClassVar[str] = ""
    reason: str
    wait: timedelta
    exit_code: int | None = 0

    @property
    def message(self) -> str:
        """One sentence for operators."""
        return self.reason


Failure = Failed | TimedOut | MemoryLimit | Crashed
"""An outcome after which a retry may follow."""


@dataclass(frozen=True)
class FailedProbe:
    """A run that a circuit breaker has let through as a probe has failed (`core.breaker`).

    The dependency is still down. The execution waits again, and the attempt does not use up a retry.

    Args:
        failure: how the attempt ended.
        reason: one sentence for operators that says for what the execution waits.
        asked_at: since when the execution waits.
        wait: how long it waits, if it is not let through before.
    """

    name: ClassVar[str] = "failed_probe"
    result: ClassVar[str] = ""
    failure: Failure
    reason: str
    asked_at: datetime
    wait: timedelta

    @property
    def exit_code(self) -> int | None:
        return self.failure.exit_code

    @property
    def signal(self) -> int | None:
        return self.failure.signal

    @property
    def error_class(self) -> str:
        return self.failure.error_class

    @property
    def message(self) -> str:
        return self.failure.message

    @property
    def traceback(self) -> str:
        return self.failure.traceback


@dataclass(frozen=True)
class Skipped:
    """The handler has nothing to do. Its function `when` says so, and the handler was not called."""

    name: ClassVar[str] = "skipped"
    signal: ClassVar[int | None] = None
    error_class: ClassVar[str] = ""
    traceback: ClassVar[str] = ""
    result: ClassVar[str] = ""
    message: str
    exit_code: int | None = 0


FAILING = (Failed.name, TimedOut.name, Crashed.name)
"""The names of the outcomes after which the retry policy decides, as attempts store them."""

Outcome = Failure | Succeeded | Cancelled | Interrupted | Deferred | Snoozed | FailedProbe | Skipped
"""An outcome of any kind."""
