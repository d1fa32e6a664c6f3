"""The way in from code: runs a registered worker, and tells what became of the run.

```python
from scheduling.api import run, wait

submitted = run("sync_tokens", {"region": "eu"}, key="tokens-eu-2026-11-23")
wait(submitted.id, seconds=60).result
```

All functions use the default database and the broker that BROKER_URL names. `run` and `run_many` insert their rows in
the transaction of the caller: if it is rolled back, the runs never were. After the commit they are published.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils import timezone as clock
from pydantic import BaseModel

from scheduling.core.lifecycle import OPEN_STATES
from scheduling.core.submitted import Submitted
from scheduling.execution.own_broker import own_broker
from scheduling.execution.results import result_of
from scheduling.execution.submit import Asked, Unique, submit
from scheduling.models import SchedulerExecution

__all__ = ["Asked", "Status", "Submitted", "UnknownRun", "run", "run_many", "status", "wait"]

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Between two looks of `wait`, in seconds."""


_OPEN = {str(state) for state in OPEN_STATES}


class UnknownRun(LookupError):
    """No execution has this id: it was never made, its transaction was rolled back, or the clean-up has removed it."""


@dataclass(frozen=True)
class Status:
    """What became of a run.

    Args:
        state: `claimed`, `queued`, `running`, `retrying`, `succeeded`, `failed`, `cancelled`, `discarded` or `skipped`.
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


def run(
    handler: str,
    params: Mapping[str, Any] | BaseModel | None = None,
    *,
    at: datetime | None = None,
    delay: float | timedelta | None = None,
    key: str = "",
    unique: Unique = "",
    debounce: float | timedelta | None = None,
    by: str = "",
) -> Submitted:
    """Ask for one run of a worker.

    Args:
        handler: the name under which the worker is registered.
        params: the params of the run, as a mapping or as an instance of the params model. They go over the params of
            the worker's row.
        at: the earliest start, with a time zone. An instant in the past means now.
        delay: the same as seconds or timedelta from now.
        key: of calls with the same key, only the first one makes a run. All get its id.
        unique: limits the key: `waiting` refuses a second run only until the first one starts, `running` until it is
            over.
        debounce: seconds or timedelta. The run starts when no call with the same key has come for so long, with the
            params of the last call.
        by: in whose name the run is asked for; it is recorded with the run.

    Raises:
        UnknownHandler: no worker is registered under this name in this process.
        ParamsInvalid: the params do not fit the params model.
        ValueError: the params are not JSON, or an argument is out of bounds.
        Held: the database was copied or restored, and no person has confirmed it yet.
    """
    if sum(given is not None for given in (at, delay, debounce)) > 1:
        raise ValueError("Give one of at=, delay= and debounce=.")
    now = clock.now()
    if delay is not None or debounce is not None:
        at = _after(now, debounce if delay is None else delay)
    asked = Asked(handler, {} if params is None else params, at, key, unique, debounce is not None, by)
    return Submitted(*submit([asked], own_broker(), now)[0])


def run_many(asked: Iterable[Asked]) -> list[Submitted]:
    """Ask for many runs in one transaction: either all of them are made, or none. See `run` for the errors."""
    return [Submitted(*found) for found in submit(list(asked), own_broker(), clock.now())]


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


def _after(now: datetime, span: float | timedelta | None) -> datetime:
    try:
        found = span if isinstance(span, timedelta) else timedelta(seconds=span or 0)
        if found >= timedelta(0):
            return now + found
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"delay= and debounce= are a timedelta or seconds, not negative, and not too long: {span!r}.")
