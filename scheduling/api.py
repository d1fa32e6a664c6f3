"""The way in from code: runs or schedules a registered worker, and tells what became of a run.

```python
from scheduling.api import run, wait

submitted = run("sync_tokens", {"region": "eu"}, key="tokens-eu-2026-11-23")
wait(submitted.id, seconds=60).result
```

All functions use the default database and the broker that CRON_BROKER_URL names. `run` and `run_many` insert their rows
in the transaction of the caller: if it is rolled back, the runs never were. After the commit they are published.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Unpack

from django.utils import timezone as clock
from pydantic import BaseModel

from scheduling.core.deployment import Held
from scheduling.core.keys import is_name
from scheduling.core.retry import RetryPolicy
from scheduling.core.submitted import Scheduled, Submitted
from scheduling.execution.events import cancel_event, make_event
from scheduling.execution.keyed_insert import Unique
from scheduling.execution.named_schedules import ScheduleOptions, upsert
from scheduling.execution.own_broker import own_broker
from scheduling.execution.run_status import Status, UnknownRun, status, wait
from scheduling.execution.submit import Asked, submit
from scheduling.handlers import UnknownHandler
from scheduling.handlers.params import ParamsInvalid
from scheduling.models import Scheduler
from scheduling.models.author import Author, AuthorKind, authored

__all__ = [
    "Asked",
    "Held",
    "ParamsInvalid",
    "ScheduleOptions",
    "Scheduled",
    "Status",
    "Submitted",
    "UnknownHandler",
    "UnknownRun",
    "cancel_schedule",
    "run",
    "run_many",
    "schedule",
    "schedule_at",
    "status",
    "unschedule",
    "wait",
]  # fmt: skip


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
    confirm: bool = True,
    headers: Mapping[str, str] | None = None,
    queue: str = "",
    priority: str = "",
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
        confirm: whether the call waits, after the commit, until RabbitMQ has confirmed the message. Without the confirm
            a lost message is noticed after ten seconds, when a producer publishes the run again.
        headers: texts that accompany the run, such as the id of a trace; its handler sees them as `run.headers`. At
            most 20, with 2 kB in all.
        queue: the queue of the run; empty: that of the handler. Only consumers of this queue start it.
        priority: `high`, `normal` or `low`; empty: that of the handler.

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
    headers = {} if headers is None else headers
    asked = Asked(
        handler, {} if params is None else params, at, key, unique, debounce is not None, by, headers, queue, priority
    )
    return Submitted(*submit([asked], own_broker(), now, confirm)[0])


def run_many(asked: Iterable[Asked], confirm: bool = True) -> list[Submitted]:
    """Ask for many runs in one transaction: either all of them are made, or none. See `run` for the errors."""
    return [Submitted(*found) for found in submit(list(asked), own_broker(), clock.now(), confirm)]


def schedule(
    name: str,
    cron: str,
    handler: str,
    params: Mapping[str, Any] | BaseModel | None = None,
    **options: Unpack[ScheduleOptions],
) -> Scheduled:
    """Make the schedule with this name, or give it these values, in the transaction of the caller.

    Whether it is paused is the operators' decision, and so is every option that is not given.

    Args:
        name: 1 to 100 lower-case letters, digits and the signs . _ : / -
        cron: a cron expression of five fields, an alias such as `@daily`, or an interval such as `@every 90m`.
        handler: the name under which the worker is registered.
        params: as in `run`.
        options: columns of the schedule, see `ScheduleOptions`.

    Raises:
        UnknownHandler: no worker is registered under this name in this process.
        ParamsInvalid: the params do not fit the params model.
        ValueError: the name, the cron expression or an option cannot be used.
        TypeError: there is no such option.
    """
    return upsert(name, cron, handler, {} if params is None else params, options)


def unschedule(name: str) -> bool:
    """Delete the schedule with this name; its runs stay. Returns whether there was one."""
    row = Scheduler.objects.filter(name=name).first() if is_name(name) else None
    with authored(Author(AuthorKind.CODE, "scheduling.api.unschedule")):
        return row is not None and bool(row.delete()[0])


def schedule_at(
    topic: str,
    run_at: datetime,
    *,
    timezone: str = "",
    payload: Mapping[str, Any] | BaseModel | None = None,
    retry: RetryPolicy | None = None,
    metadata: Mapping[str, Any] | None = None,
    key: str = "",
) -> Submitted:
    """Plan an event, in the transaction of the caller. At its time, all listeners of the topic are called.

    Args:
        topic: printable ASCII without spaces, at most 100 characters. There need not be a listener yet.
        run_at: the time. An instant in the past means now. A naive time is a local time of `timezone`.
        timezone: an IANA name; empty: the setting TIME_ZONE.
        payload: what the listeners get: JSON, or an instance of a params model.
        retry: the retry policy of this event; None: that of the settings.
        metadata: at most 50 entries of JSON, for searching and for signals.
        key: of calls with the same key, only the first one makes an event. All get its id.

    Raises:
        ParamsInvalid: a listener that this process knows refuses the payload.
        ValueError: an argument is out of bounds, or no JSON.
        Held: the database was copied or restored, and no person has confirmed it yet.
    """
    return Submitted(
        *make_event(
            topic, run_at, own_broker(),
            timezone=timezone, payload=payload, retry=retry, metadata=metadata, key=key,
        )
    )  # fmt: skip


def cancel_schedule(id: int, by: str = "code") -> bool:
    """Cancel an event that waits, for its time or for a retry. A listener that has been called is not undone.

    Returns:
        Whether there was something to cancel. An event that is just delivered is asked to end.
    """
    return cancel_event(id, by)


def _after(now: datetime, span: float | timedelta | None) -> datetime:
    try:
        found = span if isinstance(span, timedelta) else timedelta(seconds=span or 0)
        if found >= timedelta(0):
            return now + found
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"delay= and debounce= are a timedelta or seconds, not negative, and not too long: {span!r}.")
