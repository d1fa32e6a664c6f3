"""Hands deliveries from the broker thread to the caller's thread, and wakes the caller up through a socket."""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from scheduling.broker.base import Delivery
from scheduling.core.messages import TaskMessage

Identity = tuple[int | None, int, str, str, int, bool]
"""All that a consumer compares with the row. Messages that agree in the id and the attempt alone are no copies: one of
them may be older than the database."""


def identity_of(message: TaskMessage) -> Identity:
    """Return what the message names."""
    return message.execution_id, message.attempt, message.execution_key, message.type, message.id, message.parked


@dataclass(eq=False)
class DeliveryTag:
    """What is needed to answer a delivery. `tag` is valid only on the channel with the number `generation`."""

    generation: int
    tag: int
    identity: Identity | None = None
    """What the message names; None for a message that names no execution."""
    first_failure: str = ""
    since: float = field(default_factory=time.monotonic)


class DeliveryBuffer:
    """Holds the deliveries that the caller has not taken. Also remembers which taken deliveries are unanswered."""

    def __init__(self) -> None:
        self.wake_up, self._waker = socket.socketpair()
        self.wake_up.setblocking(False)
        self._waker.setblocking(False)
        self._lock = threading.Lock()
        self._waiting: deque[Delivery] = deque()
        self._held: set[Identity | None] = set()
        self._rung = False

    def put(self, delivery: Delivery) -> bool:
        """Add a delivery. Returns False and adds nothing if it is a copy of a taken, unanswered delivery."""
        with self._lock:
            if delivery.tag.identity is not None and delivery.tag.identity in self._held:
                return False
            self._waiting.append(delivery)
            if not self._rung:
                self._rung = True
                with suppress(BlockingIOError, OSError):
                    self._waker.send(b"x")
        return True

    def take(self, limit: int) -> list[Delivery]:
        """Remove at most `limit` deliveries from the head of the buffer and return them."""
        with self._lock:
            self._silence()
            taken = [self._waiting.popleft() for _ in range(min(limit, len(self._waiting)))]
            self._held.update(delivery.tag.identity for delivery in taken if delivery.tag.identity is not None)
        return taken

    def asked(self) -> bool:
        """Whether a delivery waits. Also resets the wake-up socket."""
        with self._lock:
            self._silence()
            return bool(self._waiting)

    def give_back(self, deliveries: Sequence[Delivery]) -> None:
        """Put unstarted deliveries back at the head of the buffer, in the same order."""
        with self._lock:
            for delivery in reversed(deliveries):
                self._held.discard(delivery.tag.identity)
                self._waiting.appendleft(delivery)

    def answered(self, delivery: Delivery) -> None:
        """Forget the identity of an answered delivery. From now on, `put` accepts a copy of this delivery."""
        with self._lock:
            self._held.discard(delivery.tag.identity)

    def forget(self, generation: int) -> None:
        """Drop the waiting deliveries of a lost channel, because the broker delivers them again.

        The buffer may also hold deliveries that the caller gave back after their channel was lost. The broker does not
        deliver them again, so they stay in the buffer.
        """
        with self._lock:
            self._waiting = deque(delivery for delivery in self._waiting if delivery.tag.generation != generation)

    def clear(self) -> list[Delivery]:
        """Empty the buffer and return its deliveries. These deliveries do not count as taken."""
        with self._lock:
            waiting, self._waiting = list(self._waiting), deque()
            return waiting

    def age(self) -> float:
        """How many seconds the first delivery in the buffer has waited; 0 if the buffer is empty."""
        with self._lock:
            return time.monotonic() - self._waiting[0].tag.since if self._waiting else 0.0

    def close(self) -> None:
        """Close the wake-up socket."""
        self.wake_up.close()
        self._waker.close()

    def _silence(self) -> None:
        if self._rung:
            self._rung = False
            with suppress(BlockingIOError):
                self.wake_up.recv(64)
