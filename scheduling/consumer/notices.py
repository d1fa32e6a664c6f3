"""Notices of a consumer to a child whose handler runs: the run is cancelled, or the consumer stops.

A notice comes over the child's channel. The child only peeks at the channel, so the notice stays there, and threads and
forked processes of the handler see it, too. The child drops the notices after the run.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from scheduling.consumer import framing

PEEKED_BYTES = 4096
"""All notices of a run are shorter. Nothing else is sent to a child during a run."""

CANCEL, STOP = "cancel", "stop"

HANDED_BACK = "handed_back"
"""What a child reports as the outcome of a run that has ended at a checkpoint, because the consumer stops."""

Notice = dict[str, Any]


def notice(op: str, execution_id: int, attempt: int) -> Notice:
    """The message that tells a child that its run is cancelled (CANCEL), or that the consumer stops (STOP)."""
    return {"op": op, "execution_id": execution_id, "attempt": attempt}


def is_notice(message: dict[str, Any]) -> bool:
    """Whether a message to a child is a notice, and no task."""
    return message.get("op") in (CANCEL, STOP)


class Watch:
    """Looks for one notice of one run. A look takes about a microsecond, and asks no database.

    Args:
        task: the task of the run.
        read: messages that the child has read from the channel together with the task.
    """

    def __init__(self, op: str, channel: socket.socket, task: dict[str, Any], read: Sequence[Notice] = ()) -> None:
        self._channel, self._read = channel, read
        self._wanted = notice(op, task["run"]["execution_id"], task["run"]["attempt"])
        self._seen = False

    def __call__(self) -> bool:
        """Whether the notice has come."""
        self._seen = self._seen or self._wanted in self._read or self._wanted in self._waiting()
        return self._seen

    def _waiting(self) -> list[Notice]:
        try:
            data = self._channel.recv(PEEKED_BYTES, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            return framing.FrameReader().feed(data)
        except (OSError, framing.WireError):  # usually BlockingIOError: nothing waits
            return []


class CancelWatch(Watch):
    """Looks for the notice that the run is cancelled.

    Args:
        tell: tells the consumer, at the first look, that the handler looks. The consumer then gives it time to end.
    """

    def __init__(
        self, channel: socket.socket, task: dict[str, Any], tell: Callable[[], None], read: Sequence[Notice] = ()
    ) -> None:
        super().__init__(CANCEL, channel, task, read)
        self._tell, self._told = tell, False

    def __call__(self) -> bool:
        """Whether the run is cancelled."""
        if not self._told:
            self._told = True
            with suppress(OSError):  # the consumer has died
                self._tell()
        return super().__call__()
