"""The rules of pings: what a monitor is told about the runs of a schedule, and how long a ping is worth sending.

A run is told once when it starts and once when it is over. A retry is a part of the run, so it is told neither as a
start nor as a failure: a monitor would alert although the retry may succeed, and each start would reset its clock. A
failed run that is republished is told as a new start, with an id of its own.
"""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from enum import StrEnum
from urllib.parse import quote, urlsplit, urlunsplit

from scheduling.core.lifecycle import State


class Kind(StrEnum):
    """The protocol of a ping."""

    HEALTHCHECKS = "healthchecks"
    SENTRY = "sentry"


class Event(StrEnum):
    """What a ping tells."""

    START = "start"
    SUCCESS = "success"
    FAIL = "fail"


ENDS: dict[State, Event] = {
    State.SUCCEEDED: Event.SUCCESS,
    State.SKIPPED: Event.SUCCESS,  # the handler was asked, and had nothing to do
    State.FAILED: Event.FAIL,
    State.CANCELLED: Event.FAIL,  # without an end, the monitor would wait for the run until it alerts
    State.DISCARDED: Event.FAIL,
}
"""What is told of a run that has come to this state. The run is not over in any other state."""

URL_LENGTH = 500
BODY_BYTES = 10_000
"""Healthchecks keeps so many bytes of a body."""

VARIABLE = "CRON_PING_"
"""The environment variables that may hold a ping URL begin with this text. Otherwise, a user who may edit schedules
could send the password of the database to a server of their own."""

FIRST_WAIT = timedelta(seconds=15)
LONGEST_WAIT = timedelta(minutes=5)

FARTHEST = 2 * LONGEST_WAIT
"""An instant that lies further ahead was written by a clock that was wrong, or by plain SQL. No ping waits for so long.
"""

START_LIFETIME = timedelta(minutes=10)
"""A monitor measures from the arrival of a start. A start that arrives much later measures nothing, and restarts the
monitor's clock for a run that may hang."""

END_LIFETIME = timedelta(hours=24)
"""The end of the newest run says how the schedule is doing. A monitor that was away for a night must hear it."""

OLD_END_LIFETIME = timedelta(hours=1)
"""The end of a run after which a later run has ended, too. A monitor that was away must not get thousands of them."""

_NAMESPACE = uuid.UUID("6f0c1f0e-6d0c-5b0e-9c35-6f3a1c1b7d11")


def run_id(schedule: int, execution_key: str, attempt: int) -> uuid.UUID:
    """The id by which a monitor finds the start of a run that ends. It is the same however often it is made.

    Args:
        schedule: the schedule's primary key. Execution keys are unique within a schedule only.
        attempt: the attempt with which the run was told to start: 1, or a later one after a republish.
    """
    again = f"/{attempt}" if attempt > 1 else ""
    return uuid.uuid5(_NAMESPACE, f"{schedule}/{execution_key}{again}")


def ping_url(base: str, event: Event | None, run: uuid.UUID | None = None) -> str:
    """The URL for one event, as the Healthchecks protocol writes it: `…/start?rid=…`, `…?rid=…`, `…/fail?rid=…`.

    Args:
        base: the ping URL. Its query is kept, such as `?create=1`.
        event: None and SUCCESS both mean success.
    """
    parts = urlsplit(base)
    suffix = f"/{event.value}" if event in (Event.START, Event.FAIL) else ""
    query = "&".join(filter(None, [parts.query, f"rid={quote(str(run))}" if run is not None else ""]))
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + suffix, query, ""))


def is_url(text: str) -> bool:
    """Whether the text is an address that begins with http:// or https:// and names a host."""
    if len(text) > URL_LENGTH or not text.isascii() or not text.isprintable() or " " in text:
        return False
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False


def host_of(url: str) -> str:
    """The host of a URL, with its port if it has one. This is the only part of a ping URL that pages show."""
    try:
        parts = urlsplit(url)
        return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or ""
    except ValueError:
        return ""


def wait_before(tries: int) -> timedelta:
    """How long a ping waits after so many tries, from 1 on."""
    doublings: int = 2 ** max(0, min(tries - 1, 10))
    return min(FIRST_WAIT * doublings, LONGEST_WAIT)


def is_due(at: datetime, now: datetime) -> bool:
    """Whether a ping that waits until `at` is due. One that would wait for longer than any ping waits is due, too."""
    return at <= now or at > now + FARTHEST


def age_of(created_at: datetime, now: datetime) -> timedelta:
    """The time since an event.

    If the event lies far ahead, its real age is not known. It counts as an old one, so that no later ping waits for it.
    """
    age = now - created_at
    return OLD_END_LIFETIME if age < -FARTHEST else age


def reason_to_drop(event: Event, age: timedelta, *, is_followed: bool) -> str:
    """Why a ping that was not delivered is not tried again: a part of a sentence; empty if it is tried again.

    Args:
        age: the time since the event.
        is_followed: whether a later ping of the same schedule waits: for a start its end, for an end the next end.
    """
    if event is Event.START:
        if is_followed:
            return "the end of the run is told instead"
        return "a start is of no use after ten minutes" if age >= START_LIFETIME else ""
    if age >= END_LIFETIME:
        return "it was tried for a day"
    return "a later run has ended meanwhile" if is_followed and age >= OLD_END_LIFETIME else ""


def last_lines(text: str, most: int = BODY_BYTES) -> str:
    """The last whole lines of a text, at most so many bytes in UTF-8. A line that is longer alone is cut."""
    data = text.encode("utf-8", "replace")
    if len(data) <= most:
        return data.decode()
    kept = data[-most:].decode("utf-8", "ignore")
    _cut, found, whole = kept.partition("\n")
    return whole if found and whole.strip() else kept
