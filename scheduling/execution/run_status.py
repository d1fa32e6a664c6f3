"""Tells what became of a run that code has asked for."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduling.core.lifecycle import OPEN_STATES
from scheduling.execution.results import result_of
from scheduling.models import SchedulerExecution

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Between two looks of `wait`, in seconds."""


_OPEN = {str(state) for state in OPEN_STATES}


class UnknownRun(LookupError):
    """No execution has this id: it was never made, its transaction was rolled back, or the clean-up has removed it."""


@dataclass(frozen=True)
class Status:
    """What became of a run.

    Args:
        state: `blocked`, `claimed`, `queued`, `running`, `retrying`, `succeeded`, `failed`, `cancelled`, `discarded` or
            `skipped`.
        is_over: whether the state is final. A failed run may be republished; then it is not over any more.
        result: what the handler returned, if the run succeeded and returned JSON of at most 64 kB; otherwise None.
        error: class and message of the error of a failed run; otherwise empty.
        attempt: the number of the newest attempt; 0 if none has started.
    """

    id: int
    state: str
    is_over: bool
    result: Any
    error: str
    attempt: int
    started_at: datetime | None
    finished_at: datetime | None


def status(id: int) -> Status:
    """What became of a run.

    Raises:
        UnknownRun: there is no such run.
    """
    columns = ("state", "error_class", "error_message", "attempt", "started_at", "finished_at")
    found = SchedulerExecution.objects.filter(pk=id).values_list(*columns).first()
    if found is None:
        raise UnknownRun(f"There is no run {id}.")
    state, error_class, message, attempt, started_at, finished_at = found
    error = f"{error_class}: {message}" if error_class else ""
    result = result_of(id, attempt) if state == "succeeded" else None
    return Status(id, state, state not in _OPEN, result, error, attempt, started_at, finished_at)


def wait(id: int, seconds: float) -> Status:
    """Wait until a run is over.

    Raises:
        TimeoutError: it is not over after so many seconds.
        UnknownRun: there is no such run.
    """
    end, pause = time.monotonic() + seconds, FIRST_PAUSE
    while True:
        found = status(id)
        if found.is_over:
            return found
        left = end - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"Run {id} is {found.state} after {seconds:g} s.")
        time.sleep(min(pause, left))
        pause = min(pause * 1.5, LONGEST_PAUSE)
