"""What travels: decoded once, at the edge, into a type.

The seeds' four fields (`type, id, scheduler_id, params_scheduler`, the last as JSON text) plus
ours (`execution_id, attempt, execution_key, scheduled_at, version`). A message that carries only
the seeds' four, from any client, is valid.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

VERSION = 1
TYPES = ("report", "worker", "reminder")
MAX_BODY = 1_000_000
"""Bytes; a larger body is refused before it is read (RabbitMQ 4 refuses 16 MiB by itself)."""


class DecodeError(ValueError):
    """A message cannot be read; `body` keeps its bytes for the failed inbox."""

    def __init__(self, reason: str, body: bytes) -> None:
        super().__init__(reason)
        self.body = body


@dataclass(frozen=True)
class TaskMessage:
    """A hint that an attempt may start.

    Args:
        attempt: the attempt to start; it starts only if the row stands at `attempt - 1`.
        execution_id: None for a foreign message, which gets a row when it arrives.
        parked: the body is a failed message's: somebody moved it out of the failed queue by hand.
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

    def payload(self) -> dict[str, Any]:
        """The fields as they travel."""
        return {
            "type": self.type,
            "id": self.id,
            "scheduler_id": self.scheduler_id,
            "params_scheduler": json.dumps(self.params, separators=(",", ":"), ensure_ascii=False),
            "execution_id": self.execution_id,
            "attempt": self.attempt,
            "execution_key": self.execution_key,
            "scheduled_at": stamp(self.scheduled_at) if self.scheduled_at else None,
            "trigger": self.trigger,
            "version": VERSION,
        }


@dataclass(frozen=True)
class FailedMessage:
    """A task that is parked in the failed queue, with the seeds' three further fields."""

    task: TaskMessage
    failed_at: datetime
    failed_reason: str
    retry_count: int

    def payload(self) -> dict[str, Any]:
        """The fields as they travel; the reason is cut to 2 kB, the row keeps all of it."""
        return {
            **self.task.payload(),
            "failed_at": stamp(self.failed_at),
            "failed_reason": self.failed_reason[:2000],
            "retry_count": self.retry_count,
        }


def headers_of(message: TaskMessage, error: str = "", first_failure: str = "") -> dict[str, Any]:
    """The headers beside a task: what a retry says of the failure before it, and what a copy is known by.

    Args:
        error: class and message of the last failure, cut by the caller; empty for a first attempt.
        first_failure: stamp of the first one.
    """
    headers: dict[str, Any] = {
        "x-retry-count": message.retry_count,
        "x-deduplication-header": f"{message.execution_id}:{message.attempt}",
    }
    if error:
        headers |= {"x-last-error": error, "x-first-failure-timestamp": first_failure}
    return headers


def stamp(instant: datetime) -> str:
    """An aware instant as `2025-12-12T12:03:39.002Z`."""
    return instant.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def encode(message: TaskMessage | FailedMessage) -> bytes:
    """The body of a message, UTF-8 JSON."""
    return json.dumps(message.payload(), separators=(",", ":"), ensure_ascii=False).encode()


def decode(body: bytes) -> TaskMessage:
    """Read a body from anybody.

    Raises:
        DecodeError: with a sentence and the bytes.
    """
    if len(body) > MAX_BODY:
        raise DecodeError(f"The message has {len(body)} bytes; at most {MAX_BODY} are read.", body)
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise DecodeError(f"The message is not JSON: {error}", body) from None
    if not isinstance(data, dict):
        raise DecodeError("The message is not a JSON object.", body)

    def number(name: str, *, optional: bool, low: int = 1) -> int | None:
        value = data.get(name)
        if value is None and optional:
            return None
        # bool is an int in Python, never in a contract.
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value < 2**63:
            raise DecodeError(f"'{name}' must be a whole number from {low}, not {value!r:.100}.", body)
        return value

    if data.get("type") not in TYPES:
        raise DecodeError(f"'type' must be one of {', '.join(TYPES)}, not {data.get('type')!r:.100}.", body)
    version = number("version", optional=True)
    if version is not None and version > VERSION:
        raise DecodeError(f"The message has version {version}; this consumer reads up to {VERSION}. Update it.", body)
    key = data.get("execution_key") or ""
    if not isinstance(key, str) or len(key) > 64:
        raise DecodeError("'execution_key' must be text of at most 64 characters.", body)
    id_ = number("id", optional=False)
    assert id_ is not None  # noqa: S101 - not optional
    return TaskMessage(
        type=data["type"],
        id=id_,
        scheduler_id=number("scheduler_id", optional=True),
        params=_params(data.get("params_scheduler"), body),
        execution_id=number("execution_id", optional=True),
        attempt=number("attempt", optional=True) or 1,
        execution_key=key,
        scheduled_at=_instant(data.get("scheduled_at"), body),
        # A tuple: what a stranger sends need not be hashable.
        trigger=data["trigger"] if data.get("trigger") in ("cron", "date", "manual", "message") else "message",
        retry_count=number("retry_count", optional=True, low=0) or 0,
        parked=bool(data.get("failed_at")),
    )


def check_storable(message: TaskMessage, body: bytes) -> None:
    """Refuse a stranger's params that no row can hold: the message would come back for ever.

    Raises:
        DecodeError: for NUL, which PostgreSQL refuses, and half a surrogate pair, which no encoding has.
    """
    text = json.dumps(message.params, ensure_ascii=False)
    if "\\u0000" in text or text.encode(errors="replace") != text.encode(errors="surrogatepass"):
        raise DecodeError("'params_scheduler' holds NUL or half a character, which no database stores.", body)


def decode_failed(body: bytes) -> FailedMessage:
    """Read a parked body, the seeds' or ours.

    Raises:
        DecodeError: also for a task that says nothing of its failure.
    """
    task = decode(body)
    data = json.loads(body)
    if not task.parked:
        raise DecodeError("The message does not say when and why it failed.", body)
    failed_at = _instant(data["failed_at"], body, "failed_at")
    assert failed_at is not None  # noqa: S101 - `parked` says so
    return FailedMessage(
        task=task,
        failed_at=failed_at,
        failed_reason=str(data.get("failed_reason") or ""),
        retry_count=task.retry_count,
    )


def _params(value: Any, body: bytes) -> dict[str, Any]:
    if value is None or value == "":
        return {}
    if isinstance(value, str):  # the seeds send JSON text; an object is what a person would write
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise DecodeError(f"'params_scheduler' is not JSON: {error}", body) from None
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
    except (TypeError, ValueError):
        raise DecodeError(f"'{name}' must be an ISO date and time, not {value!r:.100}.", body) from None
    if instant.tzinfo is None:
        raise DecodeError(f"'{name}' must say its offset from UTC.", body)
    return instant.astimezone(UTC)
