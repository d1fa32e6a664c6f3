"""A child process as its consumer sees it."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, field
from typing import Any

from scheduling.consumer import framing


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
    rest_until: float | None = None
    """The latest monotonic time at which the restore after a run must be complete; None if no restore is going on."""
    status: int | None = None
    """The child's wait status; None until the child has ended."""
    retiring: bool = False
    """Whether the child gets no further task because it will end soon."""

    def read_output(self, limit: int = 65536) -> bytes | None:
        """Read up to `limit` bytes of output; empty at the end of the pipe, None if no bytes wait."""
        try:
            return os.read(self.output, limit)
        except BlockingIOError:
            return None

    def send(self, message: dict[str, Any]) -> None:
        """Send a task to the child.

        Raises:
            OSError: the child has ended or does not read.
        """
        self.channel.setblocking(True)
        try:
            self.channel.settimeout(10)
            self.channel.sendall(framing.pack(message))
        finally:
            self.channel.setblocking(False)
