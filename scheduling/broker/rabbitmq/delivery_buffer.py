"""Hands deliveries from the broker thread to the caller's thread, and wakes the caller up through a socket."""

from __future__ import annotations

import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from scheduling.broker.base import Delivery
from scheduling.broker.rabbitmq.topology import WORK_DELIVERY_LIMIT
from scheduling.core.messages import TaskMessage
from scheduling.core.origin import Origin

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
    queue: str = ""
    """The broker's name of the work queue."""
    identity: Identity | None = None
    """What the message names; None for a message that names no execution."""
    first_failure: str = ""
    turn: float = 0.0
    """The instant of its turn among the waiting deliveries, in seconds since 1970 (`core.queues.LATER`)."""
    returns: int = 0
    """How often its queue has delivered it before."""
    since: float = field(default_factory=time.monotonic)


MOST_RETURNS = WORK_DELIVERY_LIMIT // 2
"""A delivery that has gone back to its queue so often waits here until a slot is free. A quorum queue counts each
return, and at its limit it would park the message of a run that never started."""


class DeliveryBuffer:
    """Holds the deliveries that the caller has not taken. Also remembers which taken deliveries are unanswered.

    Deliveries of one work queue keep their order. Among the first deliveries of several work queues, the one whose turn
    comes first is taken first.
    """

    def __init__(self) -> None:
        self.wake_up, self._waker = socket.socketpair()
        self.wake_up.setblocking(False)
        self._waker.setblocking(False)
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[Delivery]] = {}
        """The waiting deliveries by work queue. No deque is empty."""
        self._held: set[Identity | None] = set()
        self._rung = False

    def put(self, delivery: Delivery) -> bool:
        """Add a delivery. Returns False and adds nothing if it is a copy of a taken, unanswered delivery."""
        with self._lock:
            if delivery.tag.identity is not None and delivery.tag.identity in self._held:
                return False
            self._waiting.setdefault(delivery.queue, deque()).append(delivery)
            if not self._rung:
                self._rung = True
                with suppress(BlockingIOError, OSError):
                    self._waker.send(b"x")
        return True

    def take(self, limit: int) -> list[Delivery]:
        """Remove at most `limit` deliveries from the buffer and return them, in the order of their turns."""
        taken: list[Delivery] = []
        with self._lock:
            self._silence()
            while self._waiting and len(taken) < limit:
                queue = min(self._waiting, key=lambda queue: self._waiting[queue][0].tag.turn)
                taken.append(self._waiting[queue].popleft())
                if not self._waiting[queue]:
                    del self._waiting[queue]
            self._held.update(delivery.tag.identity for delivery in taken if delivery.tag.identity is not None)
        return taken

    def origins(self) -> set[Origin]:
        """What the waiting deliveries were made from."""
        with self._lock:
            return {_origin(delivery) for waiting in self._waiting.values() for delivery in waiting}

    def take_wanted(self, queues: Collection[str], limit: int, wanted: Collection[Origin]) -> list[Delivery]:
        """Remove at most `limit` deliveries of these queues and origins, and return them in the order of their turns.

        Messages without a row are left out.
        """
        with self._lock:
            self._silence()
            found = [
                delivery
                for queue in queues
                for delivery in self._waiting.get(queue, ())
                if delivery.tag.identity is not None and _origin(delivery) in wanted
            ]
            taken = sorted(found, key=lambda delivery: delivery.tag.turn)[:limit]
            tags = {delivery.tag for delivery in taken}
            self._keep(lambda delivery: delivery.tag not in tags)
            self._held.update(delivery.tag.identity for delivery in taken)
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
                self._waiting.setdefault(delivery.queue, deque()).appendleft(delivery)

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
            self._keep(lambda delivery: delivery.tag.generation != generation)

    def clear(self, *, all_of_them: bool = True) -> list[Delivery]:
        """Remove the waiting deliveries and return them. These deliveries do not count as taken.

        Args:
            all_of_them: whether to remove those, too, that have gone back to their queue `MOST_RETURNS` times.
        """
        with self._lock:
            return self._keep(lambda delivery: not (all_of_them or _may_return(delivery)))

    def age(self) -> float:
        """How many seconds the oldest delivery has waited that may go back to its queue; 0 if there is none."""
        with self._lock:
            waiting = (each.tag.since for queue in self._waiting.values() for each in queue if _may_return(each))
            since = min(waiting, default=None)
            return time.monotonic() - since if since is not None else 0.0

    def _keep(self, wanted: Callable[[Delivery], bool]) -> list[Delivery]:
        """Keep the waiting deliveries that are wanted; returns the others."""
        before = [delivery for queue in self._waiting.values() for delivery in queue]
        self._waiting = {}
        for delivery in filter(wanted, before):
            self._waiting.setdefault(delivery.queue, deque()).append(delivery)
        return [delivery for delivery in before if not wanted(delivery)]

    def close(self) -> None:
        """Close the wake-up socket."""
        self.wake_up.close()
        self._waker.close()

    def _silence(self) -> None:
        if self._rung:
            self._rung = False
            with suppress(BlockingIOError):
                self.wake_up.recv(64)


def _origin(delivery: Delivery) -> Origin:
    message = delivery.message
    return Origin(message.type, message.id, message.scheduler_id, message.group_id)


def _may_return(delivery: Delivery) -> bool:
    return bool(delivery.tag.returns < MOST_RETURNS)
