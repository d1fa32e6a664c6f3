"""Tray: deliveries on their way from the broker's thread to the caller's, and a bell that announces them."""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from scheduling.broker.base import Delivery


@dataclass(eq=False)
class Ticket:
    """What is needed to answer a delivery. Its tag dies with the channel: `generation` tells."""

    generation: int
    tag: int
    identity: tuple[int, int] | None = None
    """Execution and attempt, as its message says."""
    first_failure: str = ""
    since: float = field(default_factory=time.monotonic)


class Tray:
    """Holds what was brought and not taken yet, and remembers what was taken and not answered yet."""

    def __init__(self) -> None:
        self.bell, self._ringer = socket.socketpair()
        self.bell.setblocking(False)
        self._ringer.setblocking(False)
        self._lock = threading.Lock()
        self._waiting: deque[Delivery] = deque()
        self._held: set[tuple[int, int]] = set()
        self._rung = False

    def put(self, delivery: Delivery) -> bool:
        """Lay down what was brought; False for a copy of what was taken and is not answered yet."""
        with self._lock:
            if delivery.tag.identity is not None and delivery.tag.identity in self._held:
                return False
            self._waiting.append(delivery)
            if not self._rung:
                self._rung = True
                with suppress(BlockingIOError, OSError):
                    self._ringer.send(b"x")
        return True

    def take(self, limit: int) -> list[Delivery]:
        """At most `limit` of what waits, in order."""
        with self._lock:
            self._silence()
            taken = [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]
            self._held.update(each.tag.identity for each in taken if each.tag.identity is not None)
        return taken

    def asked(self) -> bool:
        """Whether anything waits; silences the bell."""
        with self._lock:
            self._silence()
            return bool(self._waiting)

    def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """Taken and not started: they wait again, first in line."""
        with self._lock:
            for delivery in reversed(deliveries):
                self._held.discard(delivery.tag.identity)
                self._waiting.appendleft(delivery)

    def answered(self, delivery: Delivery) -> None:
        """It is no longer in anybody's hands."""
        with self._lock:
            self._held.discard(delivery.tag.identity)

    def forget(self, generation: int) -> None:
        """The channel of this generation is gone: what waits of it will be brought again. What was given
        back after its own channel had died before will not, and stays."""
        with self._lock:
            self._waiting = deque(each for each in self._waiting if each.tag.generation != generation)

    def clear(self) -> list[Delivery]:
        """Take all that waits, without holding it."""
        with self._lock:
            waiting, self._waiting = list(self._waiting), deque()
            return waiting

    def age(self) -> float:
        """Seconds that the first has waited; 0 when nothing waits."""
        with self._lock:
            return time.monotonic() - self._waiting[0].tag.since if self._waiting else 0.0

    def close(self) -> None:
        """Close the bell."""
        self.bell.close()
        self._ringer.close()

    def _silence(self) -> None:
        if self._rung:
            self._rung = False
            with suppress(BlockingIOError):
                self.bell.recv(64)
