"""Builds the RabbitMQ messages that are sent, and decodes the messages that arrive."""

from __future__ import annotations

import hashlib
import math
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pika

from scheduling.broker.base import Delivery
from scheduling.broker.rabbitmq.topology import Topology
from scheduling.core.deaths import MOST_DEATHS, REJECTED, Death, deaths_as_text, deaths_from_text, read_deaths
from scheduling.core.headers import BROKERS_OWN, of_application, usable
from scheduling.core.json_bounds import HIGH, LOW
from scheduling.core.messages import (
    DecodeError,
    FailedMessage,
    TaskMessage,
    decode,
    encode,
    headers_of,
    iso_utc,
)
from scheduling.core.retry import MAX_RETRIES

ERROR_BYTES = 2_000
"""The maximum size of a header's text. If all headers together exceed one frame (128 KiB), the broker closes the
connection."""

ID_BYTES = 255
"""The maximum size of a message id in AMQP."""

KEPT_HEADERS = 20
PERSISTENT = 2

DEATHS_BEFORE = "x-death-before-parking"
"""Our own header. It holds the deaths of a foreign message as JSON text when this project sends the message again."""


@dataclass(frozen=True)
class Outgoing:
    """A message that is ready to be published. `ident` identifies the message in the set of confirmed messages."""

    exchange: str
    key: str
    body: bytes
    properties: Any
    ident: int


@dataclass(frozen=True)
class Arrived:
    """A decoded message from the broker. If decoding failed, `message` is None and `problem` says why."""

    message: TaskMessage | None
    problem: str = ""
    message_id: str = ""
    earlier: int = 0
    first_failure: str = ""
    deaths: tuple[Death, ...] = ()
    due: float = math.inf
    """When the message was due, in seconds since 1970, as its sender says; infinite if it is not one of ours."""


def outgoing_task(
    message: TaskMessage, exchange: str, key: str, error: str = "", first_failure: str = "", delay: int = 0
) -> Outgoing:
    """Build the message of a task. A message for a wait queue also carries the error of the failed attempt.

    Args:
        delay: the seconds that the message waits in a wait queue. Its timestamp is the instant at which it is due.
    """
    assert message.execution_id is not None  # noqa: S101 - only tasks with a row are published
    headers = headers_of(message, cut(error) if error else "", first_failure)
    properties = _properties(_identity(message), headers, int(time.time()) + delay)
    return Outgoing(exchange, key, encode(message), properties, message.execution_id)


def outgoing_failed(
    message: FailedMessage,
    topology: Topology,
    error: str,
    first_failure: str,
    message_id: str = "",
    deaths: Sequence[Death] = (),
) -> Outgoing:
    """Build the message that parks a failed task in the failed queue.

    A foreign message has its own `message_id`, and may have `deaths`.
    """
    headers = _before(deaths) | {
        "x-retry-count": message.retry_count,
        "x-last-error": cut(error),
        "x-first-failure-timestamp": first_failure or iso_utc(message.failed_at),
    }
    ident = message.task.execution_id or 0
    message_id = message_id or (_identity(message.task) if ident else _new_id())
    return Outgoing(topology.exchange, "failed", encode(message), _properties(message_id, headers), ident)


def outgoing_unreadable(body: bytes, properties: Any, topology: Topology, problem: str, now: datetime) -> Outgoing:
    """Build the message that parks an unreadable message in the failed queue, with its bytes unchanged."""
    headers = _kept_headers(properties.headers)
    headers |= {"x-last-error": cut(problem), "x-failed-at": iso_utc(now)}
    headers.setdefault("x-first-failure-timestamp", iso_utc(now))
    return Outgoing(topology.exchange, "failed", body, _as_sent(properties, headers), 0)


def outgoing_identified(body: bytes, properties: Any, topology: Topology, ident: int) -> Outgoing:
    """Build the message that replaces a parked message: the same body, now with a `message_id`."""
    return Outgoing(topology.exchange, "failed", body, _as_sent(properties, _kept_headers(properties.headers)), ident)


def read(body: bytes, properties: Any, work_queue: str) -> Arrived:
    """Decode a message that arrived. If decoding fails, the result names the problem; no error is raised."""
    headers = properties.headers or {}
    message_id = id_of(properties)
    try:
        message = decode(body)
    except DecodeError as error:
        return Arrived(None, problem=str(error), message_id=message_id)
    first = headers.get("x-first-failure-timestamp")
    first = first[:40] if isinstance(first, str) else ""
    if headers.get("x-failed-at"):  # parked as unreadable; then an operator moved the message back
        message = replace(message, parked=True)
    if message.execution_id is None:
        # If an operator moved the message out of the failed queue, its retries start at zero.
        earlier = 0 if message.parked else earlier_retries(headers, work_queue)
        message = replace(message, headers=usable(of_application(headers) | message.headers))
        return Arrived(message, "", message_id, earlier, first, deaths_in(headers))
    count = headers.get("x-retry-count")
    if isinstance(count, int) and count >= 0:
        message = replace(message, retry_count=count)
    deaths = deaths_in(headers) if message.parked else ()
    due = properties.timestamp if isinstance(properties.timestamp, int) else math.inf
    return Arrived(message, message_id=message_id, first_failure=first, deaths=deaths, due=due)


def returns_of(properties: Any) -> int:
    """How often a quorum queue has delivered the message before. A classic queue does not count."""
    count = (properties.headers or {}).get("x-delivery-count")
    return count if isinstance(count, int) else 0


def deaths_in(headers: dict[str, Any]) -> tuple[Death, ...]:
    """The deaths that the message's headers name, the newest first. Headers of any client are accepted."""
    return (*read_deaths(headers.get("x-death")), *deaths_from_text(headers.get(DEATHS_BEFORE)))[:MOST_DEATHS]


def _before(deaths: Sequence[Death]) -> dict[str, Any]:
    text = deaths_as_text(deaths, ERROR_BYTES)
    return {DEATHS_BEFORE: text} if text else {}


def _kept_headers(headers: dict[str, Any] | None) -> dict[str, Any]:
    """The headers that can be sent again, with the deaths under a name that the broker keeps."""
    return own_headers(headers) | _before(deaths_in(headers or {}))


def id_of(properties: Any) -> str:
    """The message id as text that every database can store and that can be sent again; empty if there is no id.

    pika returns bytes if the id is not UTF-8.
    """
    ident = properties.message_id or ""
    text = ident.decode("utf-8", "backslashreplace") if isinstance(ident, bytes) else str(ident)
    text = text.replace("\x00", "\\x00")
    return text if len(text.encode()) <= ID_BYTES else f"#{hashlib.sha256(text.encode()).hexdigest()}"


def foreign_id(message: TaskMessage, message_id: str) -> str:
    """The id of a parked message that no row records. Two messages get the same id only if they are copies.

    An id that this project once gave is not unique: a message from before the database was set up anew may have the id
    of a newer message. So the id then also contains a hash of the execution key.
    """
    if message_id and message_id != _identity(message):
        return message_id
    if message.execution_id is None:
        return _new_id()
    return f"{_identity(message)}:{hashlib.sha256(message.execution_key.encode()).hexdigest()[:16]}"


def own_headers(headers: dict[str, Any] | None) -> dict[str, Any]:
    """Filter the headers of a foreign message; returns the headers that can be sent again.

    The headers that the broker itself writes are left out: if a client sends them, RabbitMQ up to 3.13 continues to
    count from the sent values, and RabbitMQ 4 ignores them. Only texts and integers of 64 bits are kept, because pika
    cannot encode other numbers. (It reads a float as an integer.) The number of headers is limited, because all headers
    must fit into one frame.
    """
    kept = {
        name: cut(value) if isinstance(value, str) else value
        for name, value in (headers or {}).items()
        if isinstance(name, str)
        and (isinstance(value, str) or (isinstance(value, int) and LOW <= value <= HIGH))
        and not name.startswith(BROKERS_OWN)
        and len(name) <= 100
    }
    return dict(list(kept.items())[:KEPT_HEADERS])


def cut(text: str) -> str:
    """Shorten a text to at most ERROR_BYTES bytes of UTF-8 and replace NUL characters."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace")[:ERROR_BYTES].decode("utf-8", "ignore")


def _new_id() -> str:
    return f"parked-{uuid.uuid4().hex}"


def _identity(message: TaskMessage) -> str:
    return f"{message.execution_id}:{message.attempt}"


def _properties(message_id: str, headers: dict[str, Any], timestamp: int | None = None) -> Any:
    return pika.BasicProperties(
        delivery_mode=PERSISTENT, content_type="application/json", message_id=message_id, headers=headers,
        timestamp=timestamp,
    )  # fmt: skip


def _as_sent(properties: Any, headers: dict[str, Any]) -> Any:
    return pika.BasicProperties(
        delivery_mode=PERSISTENT,
        content_type=properties.content_type,
        content_encoding=properties.content_encoding,
        correlation_id=properties.correlation_id,
        type=properties.type,
        timestamp=properties.timestamp,
        # Without a `message_id`, two messages with the same bytes could not be told apart.
        message_id=properties.message_id or _new_id(),
        headers=headers,
    )


def earlier_retries(headers: dict[str, Any], work_queue: str) -> int:
    """How often a foreign message was retried before this project received it; never more than MAX_RETRIES allows.

    The result is the larger of two counts:

    - RabbitMQ's count of rejections in the header `x-death`. The entry is found by queue and reason, not by position:
      if the message has waited in another queue, the first entry is not the newest rejection.
    - The header `x-retry-count`. It is needed because RabbitMQ 4 restarts its own counts when a client sends a message
      back.
    """
    own = headers.get("x-retry-count")
    counts = [own if isinstance(own, int) and not isinstance(own, bool) else 0]
    deaths = read_deaths(headers.get("x-death"))
    counts += [death.count or 0 for death in deaths if (death.queue, death.reason) == (work_queue, REJECTED)]
    return max(0, min(max(counts), MAX_RETRIES[1]))


def first_failure(delivery: Delivery | None) -> str:
    """The time of the first failure that the message names; empty if it names none or if there is no message."""
    return delivery.tag.first_failure if delivery is not None and delivery.tag is not None else ""
