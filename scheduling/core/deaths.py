"""Reads `x-death`: the header in which RabbitMQ records each reason why it moved a message out of a queue.

RabbitMQ calls such a move a death. The header has one entry for each pair of queue and reason, the newest entry first.
Any client may send a header with this name, so each value of an entry can have any type and any size.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from scheduling.core.messages import FIRST_YEAR, LAST_YEAR

MOST_DEATHS = 20
"""The maximum number of entries that are read. RabbitMQ writes the newest entry first."""

MOST_KEYS = 5
TEXT_LENGTH = 255
"""The maximum length of a text. AMQP allows no longer names of queues and exchanges."""

MOST_TIMES = 10**12

DELIVERY_LIMIT, EXPIRED, MAXLEN, REJECTED = "delivery_limit", "expired", "maxlen", "rejected"
"""The reasons that RabbitMQ gives."""


@dataclass(frozen=True)
class Death:
    """One entry of `x-death`.

    Args:
        queue: the queue that the message left.
        reason: `rejected`, `expired`, `maxlen`, `delivery_limit`, or a text that another client has sent.
        count: how often the message left this queue for this reason; None if the entry names no usable number.
        exchange: the exchange to which the message had been published; empty for the default exchange.
        routing_keys: the routing keys of that message, at most MOST_KEYS.
        at: when the message left the queue for this reason for the first time (UTC); None if the entry names no usable
            time.
    """

    queue: str
    reason: str
    count: int | None = None
    exchange: str = ""
    routing_keys: tuple[str, ...] = ()
    at: datetime | None = None

    def entry(self) -> dict[str, Any]:
        """The entry as JSON values, with RabbitMQ's names. `read_deaths` reads it again."""
        return {
            "queue": self.queue,
            "reason": self.reason,
            "count": self.count,
            "exchange": self.exchange,
            "routing-keys": list(self.routing_keys),
            "time": self.at.isoformat() if self.at is not None else None,
        }


def read_deaths(value: object) -> tuple[Death, ...]:
    """The deaths in a value of the header `x-death`, or in a stored list of entries; at most MOST_DEATHS.

    An entry without a queue and a reason is left out. Any other value that cannot be used is left out of its entry. So
    every database can store the result.
    """
    found = (_death(entry) for entry in value[: MOST_DEATHS * 5]) if isinstance(value, list) else ()
    return tuple(death for death in found if death is not None)[:MOST_DEATHS]


def deaths_as_text(deaths: Iterable[Death], most_bytes: int) -> str:
    """The newest deaths as a JSON list of at most so many bytes of UTF-8; empty if there is no death that fits."""
    parts: list[str] = []
    length = 1
    for death in deaths:
        part = json.dumps(death.entry())
        length += len(part) + 2
        if length > most_bytes:
            break
        parts.append(part)
    return f"[{', '.join(parts)}]" if parts else ""


def deaths_from_text(text: object) -> tuple[Death, ...]:
    """The deaths in a text that `deaths_as_text` made. A value that is no such text has no deaths."""
    try:
        return read_deaths(json.loads(text)) if isinstance(text, str) else ()
    except (ValueError, RecursionError):
        return ()


def _death(entry: object) -> Death | None:
    if not isinstance(entry, dict):
        return None
    queue, reason = _text(entry.get("queue")), _text(entry.get("reason"))
    if not queue or not reason:
        return None
    keys = entry.get("routing-keys")
    routing_keys = tuple(_text(key) for key in keys[:MOST_KEYS]) if isinstance(keys, list) else ()
    count, exchange = _count(entry.get("count")), _text(entry.get("exchange"))
    return Death(queue, reason, count, exchange, tuple(filter(None, routing_keys)), _instant(entry.get("time")))


def _text(value: object) -> str:
    """A text that every database can store; empty if the value is no text. pika gives bytes if it is not UTF-8."""
    if isinstance(value, bytes):
        value = value[:TEXT_LENGTH].decode("utf-8", "backslashreplace")
    if not isinstance(value, str):
        return ""
    return value[:TEXT_LENGTH].replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_TIMES:
        return None
    return int(value)  # pika has a subclass of int


def _instant(value: object) -> datetime | None:
    """The instant in UTC. RabbitMQ sends a timestamp; JSON has a text, or seconds since 1970."""
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value[:40])
        elif isinstance(value, int) and not isinstance(value, bool):
            value = datetime.fromtimestamp(value, UTC)
        if not isinstance(value, datetime):
            return None
        instant = value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return instant if FIRST_YEAR <= instant.year <= LAST_YEAR else None
