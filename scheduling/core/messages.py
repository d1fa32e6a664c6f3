"""Encodes and decodes the messages of the broker. A message is decoded once, when it arrives, into a typed object.

A message has the four fields of the original contract (docs/original-contract.md): `type`, `id`, `scheduler_id`, and
`params_scheduler` as JSON text. A message of another client may have only these four fields. This project adds
`execution_id`, `attempt`, `execution_key`, `scheduled_at`, `trigger` and `version`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from scheduling.core import json_bounds
from scheduling.core.headers import usable
from scheduling.core.lifecycle import Trigger
from scheduling.core.targets import TARGETS

VERSION = 1
MAX_BODY = 1_000_000
"""The maximum size of a body in bytes. A larger body is refused before it is parsed. (RabbitMQ 4 allows 16 MiB.)"""

FIRST_YEAR, LAST_YEAR = 1970, 9998
"""The first and the last year that an instant in a message may have. Every instant in these years can be converted to
every zone and stored in every database."""


def is_in_calendar(instant: datetime) -> bool:
    """Whether an instant with a time zone lies in these years, in UTC."""
    if FIRST_YEAR < instant.year < LAST_YEAR:
        return True  # in every zone
    try:
        return FIRST_YEAR <= instant.astimezone(UTC).year <= LAST_YEAR
    except OverflowError:
        return False


LARGEST_COUNT = 2**31 - 1
"""The maximum attempt number and the maximum retry count. Their columns hold 32-bit integers."""


class DecodeError(ValueError):
    """A message cannot be decoded. `body` keeps the message's bytes for the failed inbox."""

    def __init__(self, reason: str, body: bytes) -> None:
        super().__init__(reason)
        self.body = body


@dataclass(frozen=True)
class TaskMessage:
    """A request to start an attempt. The execution's row decides whether the attempt starts.

    Args:
        attempt: the number of the attempt to start. The attempt starts only if the row's last attempt is `attempt - 1`.
        execution_id: None for a foreign message, which gets a row when it arrives.
        parked: whether the message was in the failed queue and an operator has moved it out by hand.
        group_id: the group of the execution. Only a message that equals its row may use it: the row decides.
        headers: the headers of the run (`core.headers`).
    """

    type: str
    id: int
    scheduler_id: int | None = None
    params: dict[str, Any] = field(default_factory=dict)
    execution_id: int | None = None
    attempt: int = 1
    execution_key: str = ""
    scheduled_at: datetime | None = None
    trigger: str = "message"
    retry_count: int = 0
    parked: bool = False
    group_id: int | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def payload(self) -> dict[str, Any]:
        """The fields that are sent to the broker. Group and headers are left out if there are none."""
        group = {} if self.group_id is None else {"group_id": self.group_id}
        headers = {"headers": self.headers} if self.headers else {}
        return {
            "type": self.type,
            "id": self.id,
            "scheduler_id": self.scheduler_id,
            "params_scheduler": json.dumps(self.params, separators=(",", ":"), ensure_ascii=False),
            "execution_id": self.execution_id,
            "attempt": self.attempt,
            "execution_key": self.execution_key,
            # With all digits, because a consumer compares it with the row.
            "scheduled_at": self.scheduled_at.astimezone(UTC).isoformat() if self.scheduled_at else None,
            "trigger": self.trigger,
            "version": VERSION,
            **group,
            **headers,
        }


@dataclass(frozen=True)
class FailedMessage:
    """A task that is parked in the failed queue. The original contract requires `failed_at`, `failed_reason` and
    `retry_count`.
    """

    task: TaskMessage
    failed_at: datetime
    failed_reason: str
    retry_count: int

    def payload(self) -> dict[str, Any]:
        """The fields that are sent to the broker. The reason is cut to 2,000 characters."""
        return {
            **self.task.payload(),
            "failed_at": iso_utc(self.failed_at),
            "failed_reason": self.failed_reason[:2000],
            "retry_count": self.retry_count,
        }


def headers_of(message: TaskMessage, error: str = "", first_failure: str = "") -> dict[str, Any]:
    """The headers of a task: the retry count, and an id that is the same for all copies of the message.

    The headers of a retry also have the last error and the time of the first failure.

    Args:
        error: the class and message of the last failure, already shortened; empty for a first attempt.
        first_failure: the time of the first failure, as text.
    """
    headers: dict[str, Any] = {
        "x-retry-count": message.retry_count,
        "x-deduplication-header": f"{message.execution_id}:{message.attempt}",
    }
    if error:
        headers |= {"x-last-error": error, "x-first-failure-timestamp": first_failure}
    return headers


def iso_utc(instant: datetime) -> str:
    """An aware instant as UTC text, such as `2025-12-12T12:03:39.002Z`."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def encode(message: TaskMessage | FailedMessage) -> bytes:
    """The message as JSON in UTF-8."""
    return json.dumps(message.payload(), separators=(",", ":"), ensure_ascii=False).encode(errors="replace")


def decode(body: bytes) -> TaskMessage:
    """Decode the body of a message from any client.

    Raises:
        DecodeError: the body cannot be decoded. No other exception is raised.
    """
    try:
        return _decode(body)
    except DecodeError:
        raise
    except Exception as error:
        raise DecodeError(f"The message cannot be read: {type(error).__name__}: {error!s:.300}", body) from None


def _decode(body: bytes) -> TaskMessage:
    data = _object(body)
    # Another client may send an unhashable value, so the value is looked up in a tuple.
    if data.get("type") not in TARGETS:
        raise DecodeError(f"'type' must be one of {', '.join(TARGETS)}, not {data.get('type')!r:.100}.", body)
    version = _optional(data, "version", body)
    if version is not None and version > VERSION:
        raise DecodeError(f"The message has version {version}; this consumer reads up to {VERSION}. Update it.", body)
    key = data.get("execution_key") or ""
    if not isinstance(key, str) or len(key) > 64 or not json_bounds.is_storable(key):
        raise DecodeError("'execution_key' must be text of at most 64 characters.", body)
    execution_id = _optional(data, "execution_id", body)
    try:
        params = _params(data.get("params_scheduler"), body)
    except DecodeError:
        if execution_id is None:
            raise
        params = {}  # the run reads its params from the row, not from the message
    return TaskMessage(
        type=data["type"],
        id=_number(data, "id", body),
        scheduler_id=_optional(data, "scheduler_id", body),
        params=params,
        execution_id=execution_id,
        attempt=_optional(data, "attempt", body, high=LARGEST_COUNT) or 1,
        execution_key=key,
        scheduled_at=_instant(data.get("scheduled_at"), body),
        # This value may be unhashable too.
        trigger=data["trigger"] if data.get("trigger") in tuple(Trigger) else Trigger.MESSAGE.value,
        retry_count=_optional(data, "retry_count", body, low=0, high=LARGEST_COUNT) or 0,
        parked=bool(data.get("failed_at")),
        group_id=_optional(data, "group_id", body) if execution_id is not None else None,
        headers=usable(data.get("headers")),
    )


def decode_failed(body: bytes) -> FailedMessage:
    """Decode the body of a parked message. The fields that this project adds may be missing.

    Raises:
        DecodeError: `decode` refuses the body, or the message has no valid `failed_at`.
    """
    task = decode(body)
    data = json.loads(body)
    if not task.parked:
        raise DecodeError("The message does not say when and why it failed.", body)
    failed_at = _instant(data["failed_at"], body, "failed_at")
    assert failed_at is not None  # noqa: S101 - `parked` is True only with `failed_at`
    return FailedMessage(
        task=task, failed_at=failed_at, failed_reason=str(data.get("failed_reason") or ""), retry_count=task.retry_count
    )


def _object(body: bytes) -> dict[str, Any]:
    if len(body) > MAX_BODY:
        raise DecodeError(f"The message has {len(body)} bytes; at most {MAX_BODY} are read.", body)
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"The message is not JSON: {error}", body) from None
    if not isinstance(data, dict):
        raise DecodeError("The message is not a JSON object.", body)
    return data


def _optional(data: dict[str, Any], name: str, body: bytes, low: int = 1, high: int = json_bounds.HIGH) -> int | None:
    return None if data.get(name) is None else _number(data, name, body, low, high)


def _number(data: dict[str, Any], name: str, body: bytes, low: int = 1, high: int = json_bounds.HIGH) -> int:
    value = data.get(name)
    # In Python a bool is an int, but in JSON it is not a number.
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise DecodeError(f"'{name}' must be a whole number from {low} to {high}, not {value!r:.100}.", body)
    return value


def _params(value: Any, body: bytes) -> dict[str, Any]:
    if value is None or value == "":
        return {}
    try:
        if isinstance(value, str):  # the original contract requires JSON text; an object is accepted too
            value = json_bounds.loads(value)
        else:
            json_bounds.check(value)
    except json_bounds.NotStorable as error:
        raise DecodeError(f"'params_scheduler' {error}", body) from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise DecodeError("'params_scheduler' must hold a JSON object.", body)
    return value


def _instant(value: Any, body: bytes, name: str = "scheduled_at") -> datetime | None:
    if value is None:
        return None
    try:
        instant = datetime.fromisoformat(value)
        offset = instant.utcoffset()
        instant = instant.astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise DecodeError(f"'{name}' must be an ISO date and time, not {value!r:.100}.", body) from None
    if offset is None:
        raise DecodeError(f"'{name}' must say its offset from UTC.", body)
    if not FIRST_YEAR <= instant.year <= LAST_YEAR:
        raise DecodeError(f"'{name}' must lie between {FIRST_YEAR} and {LAST_YEAR}, not {value!r:.100}.", body)
    return instant
