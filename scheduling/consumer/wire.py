"""Framing between a supervisor and its children: a length, then JSON.

JSON, never pickle: what a child (or whatever it ran) writes is only ever read as data.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("!I")
MAX_FRAME = 32 * 1024 * 1024


class WireError(Exception):
    """The other side sent what no frame is."""


def pack(message: dict[str, Any]) -> bytes:
    """One message as bytes; what JSON cannot hold becomes text."""
    body = json.dumps(message, separators=(",", ":"), default=str).encode()
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Bytes in any portions -> messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """The messages that are complete by now.

        Raises:
            WireError: for a frame that is too large or not a JSON object.
        """
        self._buffer += data
        messages: list[dict[str, Any]] = []
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > MAX_FRAME:
                raise WireError(f"a frame of {length} bytes")
            if len(self._buffer) < _LENGTH.size + length:
                break
            body = bytes(self._buffer[_LENGTH.size : _LENGTH.size + length])
            del self._buffer[: _LENGTH.size + length]
            try:
                message = json.loads(body)
            except (ValueError, RecursionError) as error:
                raise WireError(str(error)) from None
            if not isinstance(message, dict):
                raise WireError("not an object")
            messages.append(message)
        return messages


def receive(channel: socket.socket, reader: FrameReader, pending: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Block until a message is there; None at the end of the stream."""
    while not pending:
        data = channel.recv(65536)
        if not data:
            return None
        pending.extend(reader.feed(data))
    return pending.pop(0)
