"""The format of the frames that a supervisor and its children exchange: a length, then JSON.

Pickle is not used, because a pickle can run code in the process that reads it. A child, or a program that the child has
started, must be able to send only data.
"""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

_LENGTH = struct.Struct("!I")
_encode = json.JSONEncoder(separators=(",", ":"), default=str).encode  # json.dumps would make an encoder for each call
_decode = json.JSONDecoder().decode  # a handler may have patched json.loads
MAX_FRAME = 32 * 1024 * 1024
"""The largest frame in bytes. The limit keeps a broken child from filling the supervisor's memory."""


class WireError(Exception):
    """The other side sent an invalid frame."""


def pack(message: dict[str, Any]) -> bytes:
    """Turn one message into bytes. Values that JSON cannot hold become text."""
    body = _encode(message).encode()
    return _LENGTH.pack(len(body)) + body


class FrameReader:
    """Splits a byte stream into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Add bytes; returns the messages that these bytes complete.

        Raises:
            WireError: a frame is too large or not a JSON object.
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
                message = _decode(body.decode())
            except (ValueError, RecursionError) as error:
                raise WireError(str(error)) from None
            if not isinstance(message, dict):
                raise WireError("not an object")
            messages.append(message)
        return messages


def receive(channel: socket.socket, reader: FrameReader, pending: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Wait for the next message and return it; returns None at the end of the stream.

    Args:
        pending: messages that were read already. The function reads from the channel only if this list is empty.
    """
    while not pending:
        data = channel.recv(65536)
        if not data:
            return None
        pending.extend(reader.feed(data))
    return pending.pop(0)
