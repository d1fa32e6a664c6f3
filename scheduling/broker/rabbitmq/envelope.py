"""Envelope: properties and headers around a body, on the way out and on the way in."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pika

from scheduling.broker.topology import Topology, earlier_retries
from scheduling.core.messages import (
    DecodeError,
    FailedMessage,
    TaskMessage,
    check_storable,
    decode,
    encode,
    headers_of,
    stamp,
)

ERROR_BYTES = 2_000
"""Of `x-last-error`: all headers must fit one frame of 128 KiB, or the broker closes the connection."""

KEPT_HEADERS = 20
PERSISTENT = 2

# Written by the broker. Sent back, RabbitMQ up to 3.13 goes on counting and 4.x ignores them.
_BROKERS_OWN = ("x-death", "x-first-death-", "x-last-death-", "x-delivery-count", "x-acquired-count")


@dataclass(frozen=True)
class Letter:
    """A message ready to be published; `ident` is what the caller knows it by."""

    exchange: str
    key: str
    body: bytes
    properties: Any
    ident: int


@dataclass(frozen=True)
class Arrived:
    """A message as it came in, decoded. `problem` says why it cannot be read."""

    message: TaskMessage | None
    problem: str = ""
    message_id: str = ""
    earlier: int = 0
    first_failure: str = ""


def task_letter(message: TaskMessage, exchange: str, key: str, error: str = "", first_failure: str = "") -> Letter:
    """A task on its way to a work queue or, with the error that it waits for, to a wait queue."""
    assert message.execution_id is not None  # noqa: S101 - only rows are published
    headers = headers_of(message, cut(error) if error else "", first_failure)
    return Letter(exchange, key, encode(message), _properties(_identity(message), headers), message.execution_id)


def failed_letter(message: FailedMessage, topology: Topology, error: str, first_failure: str) -> Letter:
    """A failed task on its way to the failed queue."""
    headers = {
        "x-retry-count": message.retry_count,
        "x-last-error": cut(error),
        "x-first-failure-timestamp": first_failure or stamp(message.failed_at),
    }
    ident = message.task.execution_id or 0
    message_id = _identity(message.task) if ident else f"parked-{uuid.uuid4().hex}"
    return Letter(topology.exchange, "failed", encode(message), _properties(message_id, headers), ident)


def unreadable_letter(body: bytes, properties: Any, topology: Topology, problem: str, now: datetime) -> Letter:
    """A message that nobody can read, bytes unchanged, on its way to the failed queue."""
    headers = own_headers(properties.headers)
    headers |= {"x-last-error": cut(problem), "x-failed-at": stamp(now)}
    headers.setdefault("x-first-failure-timestamp", stamp(now))
    return Letter(topology.exchange, "failed", body, _as_sent(properties, headers), 0)


def identified_letter(body: bytes, properties: Any, topology: Topology) -> Letter:
    """A parked message that had no identity, with one, on its way back to the failed queue."""
    return Letter(topology.exchange, "failed", body, _as_sent(properties, own_headers(properties.headers)), 0)


def read(body: bytes, properties: Any, work_queue: str) -> Arrived:
    """Decode what came in; never raises."""
    headers = properties.headers or {}
    message_id = properties.message_id or ""
    try:
        message = decode(body)
        if message.execution_id is None:
            check_storable(message, body)
    except DecodeError as error:
        return Arrived(None, problem=str(error), message_id=message_id)
    first = headers.get("x-first-failure-timestamp")
    first = first[:40] if isinstance(first, str) else ""
    if headers.get("x-failed-at"):  # an unreadable one, moved back by hand to a consumer that reads it
        message = replace(message, parked=True)
    if message.execution_id is None:
        # What somebody moved out of the failed queue begins again, with all its retries.
        earlier = 0 if message.parked else earlier_retries(headers, work_queue)
        return Arrived(message, message_id=message_id, earlier=earlier, first_failure=first)
    count = headers.get("x-retry-count")
    if isinstance(count, int) and count >= 0:
        message = replace(message, retry_count=count)
    return Arrived(message, message_id=message_id, first_failure=first)


def own_headers(headers: dict[str, Any] | None) -> dict[str, Any]:
    """A stranger's headers without the broker's own and without what cannot be sent again.

    pika has no encoding for floats, and one frame must hold them all.
    """
    kept = {
        name: cut(value) if isinstance(value, str) else value
        for name, value in (headers or {}).items()
        if isinstance(value, str | int) and not name.startswith(_BROKERS_OWN) and len(name) <= 100
    }
    return dict(list(kept.items())[:KEPT_HEADERS])


def cut(text: str) -> str:
    """At most 2 kB, whole characters, no NUL."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace")[:ERROR_BYTES].decode("utf-8", "ignore")


def _identity(message: TaskMessage) -> str:
    return f"{message.execution_id}:{message.attempt}"


def _properties(message_id: str, headers: dict[str, Any]) -> Any:
    return pika.BasicProperties(
        delivery_mode=PERSISTENT, content_type="application/json", message_id=message_id, headers=headers
    )


def _as_sent(properties: Any, headers: dict[str, Any]) -> Any:
    return pika.BasicProperties(
        delivery_mode=PERSISTENT,
        content_type=properties.content_type,
        content_encoding=properties.content_encoding,
        correlation_id=properties.correlation_id,
        type=properties.type,
        timestamp=properties.timestamp,
        # Without an identity nobody could tell it from another with the same bytes.
        message_id=properties.message_id or f"parked-{uuid.uuid4().hex}",
        headers=headers,
    )
