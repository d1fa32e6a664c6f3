"""A child process as its consumer sees it."""

from __future__ import annotations

import fcntl
import os
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from scheduling.consumer import framing

NARROW_PIPE_BYTES = 64 * 1024
"""The size of a new pipe on Linux."""

PIPE_BYTES = 256 * 1024
"""The size of the pipe of a child that prints much. The supervisor reads it once in a turn, and a turn may take 20 ms
or more, because it writes to the database."""


SEND_SECONDS = 10.0
"""How long the supervisor waits for a child that does not read its task."""

READ_BYTES = 64 * 1024


@dataclass(eq=False)
class Child:
    """One forked process, with a channel for tasks and answers and a pipe for its output."""

    number: int
    channel: socket.socket
    output: int
    pid: int | None = None
    runs: int = 0
    reader: framing.FrameReader = field(default_factory=framing.FrameReader)
    task: Any = None
    """The `Running` that this child executes or has executed last; None while the child waits."""
    answered: Any = None
    """The `Running` that has answered last. The log names it when the child ends."""
    rest_until: float | None = None
    """The latest monotonic time at which the restore after a run must be complete; None if no restore is going on."""
    status: int | None = None
    """The child's wait status; None until the child has ended."""
    is_wide: bool = False
    """Whether the output has filled its pipe once. The pipe was then made larger, where the system allows it."""
    retiring: bool = False
    """Whether the child gets no further task because it will end soon."""

    def read_output(self) -> bytes | None:
        """Read up to PIPE_BYTES of output; empty at the end of the pipe, None if no bytes wait."""
        try:
            data = os.read(self.output, PIPE_BYTES)
        except BlockingIOError:
            return None
        if len(data) >= NARROW_PIPE_BYTES and not self.is_wide:
            self.is_wide = True
            if sys.platform == "linux":
                with suppress(OSError):  # the user's limit for pipes is used up
                    fcntl.fcntl(self.output, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        return data

    def receive(self) -> tuple[list[dict[str, Any]], bool]:
        """Read the child's new messages. The second value says whether the stream has ended.

        One read is enough while the child lives, because the selector reports a rest. After its end, all is read.

        Raises:
            OSError: the stream is broken.
            framing.WireError: the child has written an invalid frame.
        """
        found: list[dict[str, Any]] = []
        with suppress(BlockingIOError):
            while data := self.channel.recv(READ_BYTES):
                found += self.reader.feed(data)
                if len(data) < READ_BYTES and self.status is None:
                    return found, False
            return found, True
        return found, False

    def send(self, message: dict[str, Any]) -> None:
        """Send a task to the child.

        Raises:
            OSError: the child has ended or does not read.
        """
        data = framing.pack(message)
        sent = 0
        with suppress(BlockingIOError):
            sent = self.channel.send(data)
        if sent == len(data):
            return
        self.channel.settimeout(SEND_SECONDS)
        try:
            self.channel.sendall(data[sent:])
        finally:
            self.channel.setblocking(False)
