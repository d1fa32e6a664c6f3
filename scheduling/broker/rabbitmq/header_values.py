"""Lets pika read headers with values that Python cannot hold, such as a time in the year 140,000,000,000.

pika raises an error for such a value while it reads from the socket. The connection is then lost, RabbitMQ delivers the
message again on the next connection, and the consumer never gets another message. Any client may send such a message.
(RabbitMQ itself refuses floats that are not finite.)
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from pika import data

_TIMESTAMP, _TIMESTAMP_BYTES = b"T", 8
_NESTED = (b"A", b"F")
"""Arrays and tables. They may be nested more deeply than Python's stack allows."""

_decode: Callable[[bytes, int], tuple[Any, int]] = data.decode_value


def tolerate_values() -> None:
    """Let pika read None instead of a header value that Python cannot hold. A second call changes nothing."""
    data.decode_value = _tolerant


def _tolerant(encoded: bytes, offset: int) -> tuple[Any, int]:
    """Decode the value at `offset`; returns the value and the offset after it.

    Raises:
        pika.exceptions.InvalidFieldTypeException: the value has an unknown type.
        struct.error: the bytes end too early.
    """
    try:
        return _decode(encoded, offset)
    except (ValueError, OverflowError, OSError, RecursionError):
        kind = encoded[offset : offset + 1]
        if kind in _NESTED:
            return None, offset + 5 + struct.unpack_from(">I", encoded, offset + 1)[0]
        if kind == _TIMESTAMP:
            return None, offset + 1 + _TIMESTAMP_BYTES
        raise
