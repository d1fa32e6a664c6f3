"""RabbitBroker: the Protocol that dispatch, inbox and consumer know, over the broker thread."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import partial

from django.utils import timezone as clock

from scheduling.broker.base import BrokerError, BrokerUnavailable, Counts, Delivery
from scheduling.broker.rabbitmq.address import Address
from scheduling.broker.rabbitmq.engine import Engine
from scheduling.broker.rabbitmq.envelope import Letter, failed_letter, task_letter
from scheduling.broker.rabbitmq.parking import RabbitParking
from scheduling.broker.topology import LADDER, WORK, Queue, Topology, rung_for, whole_seconds
from scheduling.core.messages import FailedMessage, TaskMessage, stamp
from scheduling.logs import get_logger

log = get_logger(__name__)

PATIENCE_SECONDS = 5.0

MOST_RUNGS = 200
"""Each is two queues that are never removed: a queue that expires or is deleted may take messages with it."""


class RabbitBroker:
    """RabbitMQ. Nothing is connected before it is needed, and each method returns or raises in bounded time.

    Args:
        url: `amqp://` or `amqps://`, see `Address`.
        retry_delay_ms: how long a message waits that had to be given back raw.
        patience: seconds the broker may take to answer, or between two confirms.
        ladder: seconds of the wait queues that always exist.

    Raises:
        ConfError: for a URL that cannot be read.
    """

    embedded = False
    parks = True

    def __init__(
        self,
        url: str,
        *,
        retry_delay_ms: int = 30_000,
        patience: float = PATIENCE_SECONDS,
        ladder: Iterable[int] = LADDER,
    ) -> None:
        self.address = Address(url)
        self.topology = Topology(self.address.prefix, retry_delay_ms)
        self._patience = patience
        self._rungs = frozenset(ladder)
        self._waits_for = ""
        self._declared = False
        self._starting = threading.Lock()
        self._engine: Engine | None = None
        self._queue = ""
        """What is consumed, if anything."""

    @property
    def product(self) -> str:
        """What the broker calls itself, `RabbitMQ 3.10.8`; empty before it was reached."""
        return self._engine.product if self._engine is not None else ""

    def declare(self, delays_ms: Iterable[int] = (), queue: str = "") -> None:
        """Declare everything the first time, and by itself on each new connection from then on.

        Wait queues that are asked for later are declared in the background; if a message is faster,
        it finds its queue missing, which declares it.
        """
        new = sorted(whole_seconds(delays_ms) - self._rungs)
        # Beyond that many, delays are rounded up to the next wait queue that is there.
        wanted = set(new[: max(0, MOST_RUNGS - len(self._rungs))])
        self._rungs |= wanted
        first = not self._declared or queue not in ("", self._waits_for)
        self._waits_for = queue or self._waits_for
        if first:
            self._declared = True
            self._running().declare(self._everything())
        elif wanted and self._waits_for:
            self._running().declare_soon(self.topology.rungs(self._waits_for, wanted))

    def delay(self, delay_ms: int, queue: str, drawn: bool = False) -> int:
        """The delay of the wait queue that fits; the immediate queue has none."""
        if queue == "immediate":
            return 0
        return rung_for(delay_ms, self._rungs, random.random if drawn else None) * 1000

    def publish(self, messages: Sequence[TaskMessage], queue: str = "main") -> set[int]:
        """Through the default exchange, persistent, mandatory, pipelined, confirmed."""
        key = self.topology.work(queue)
        return self._running().send([task_letter(message, "", key) for message in messages])

    def consume(self, queue: str, prefetch: int) -> None:
        """On a connection of its own, which is kept up from now on."""
        if prefetch or self._queue:
            self._queue = queue
            engine = self._running()
            engine.loop.call(partial(engine.subscription.want, self.topology.work(queue), prefetch))

    def ready(self, queue: str, now: datetime) -> bool:
        """Whether something was brought."""
        return self._engine is not None and self._engine.subscription.waiting()

    def take(self, queue: str, limit: int, now: datetime) -> list[Delivery]:
        """What was brought, in its order."""
        return self._engine.subscription.take(limit) if self._engine is not None else []

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """They wait here, not at the broker: while the database is away it would only bring them back."""
        if self._engine is not None:
            self._engine.subscription.tray.give_back([each for each in deliveries if each.tag is not None])

    def acknowledge(self, delivery: Delivery) -> None:
        """Sent in the background. If its channel is gone, the copy that comes will be acknowledged."""
        self._answer(delivery, "ack")

    def retry(self, delivery: Delivery, message: TaskMessage, delay_ms: int, error: str) -> bool:
        """To the wait queue of the delay; when that cannot be confirmed, by the raw nack, which needs no
        publishing: it returns after CRON_RETRY_DELAY_MS, and starts the retry if it is due by then."""
        queue = self._queue
        if queue == "immediate":
            self._answer(delivery, "requeue")
            return True
        seconds = round(delay_ms / 1000)
        if seconds:
            exchange, key = self.topology.exchange, self.topology.rung_key(queue, seconds)
        else:
            exchange, key = "", self.topology.work(queue)
        first = _first_failure(delivery) or stamp(clock.now())
        confirmed = self._sent(task_letter(message, exchange, key, error, first))
        self._answer(delivery, "ack" if confirmed else "nack")
        return confirmed

    def fail(self, delivery: Delivery | None, message: FailedMessage, error: str) -> bool:
        """To the failed queue; when that cannot be confirmed, the sync pass parks it later."""
        first = _first_failure(delivery)
        confirmed = self._sent(failed_letter(message, self.topology, error, first))
        if delivery is not None:
            self._answer(delivery, "ack")
        return confirmed

    def parked(self) -> RabbitParking:
        """On a connection of its own: closing it is what puts everything back in order."""
        engine, failed = self._running(), self.topology.failed
        return RabbitParking(
            engine.loop,
            self.address,
            self.topology,
            publish=engine.send,
            ready=lambda: engine.declare(())[failed],
            patience=self._patience,
        )

    def counts(self) -> Counts:
        """Ready messages. Asking declares: a queue that was deleted is back afterwards."""
        ready = self._running().declare(self.topology.base())
        return Counts({queue: ready[self.topology.work(queue)] for queue in WORK}, ready[self.topology.failed])

    def fileno(self) -> int | None:
        """A socket that turns readable when a message was brought."""
        return self._engine.subscription.tray.bell.fileno() if self._engine is not None and self._queue else None

    def close(self) -> None:
        """Disconnect; RabbitMQ gives unanswered messages to others at once."""
        with self._starting:
            engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def _running(self) -> Engine:
        with self._starting:
            if self._engine is None:
                self._engine = Engine(self.address, self.topology, self._to_declare, self._patience)
            return self._engine

    def _everything(self) -> tuple[Queue, ...]:
        rungs = self.topology.rungs(self._waits_for, self._rungs) if self._waits_for else ()
        return (*self.topology.base(), *rungs)

    def _to_declare(self) -> tuple[Queue, ...]:
        """A process that has declared once (a producer, a consumer) does so on each connection."""
        return self._everything() if self._declared else ()

    def _answer(self, delivery: Delivery, how: str) -> None:
        if self._engine is not None and delivery.tag is not None:
            self._engine.subscription.answer(delivery, how)

    def _sent(self, letter: Letter) -> bool:
        try:
            return letter.ident in self._running().send([letter])
        except BrokerUnavailable as error:
            # Said once already, when it began. The row knows what is to be done, and sweeps do it.
            log.debug("Not published now: %s", error, extra={"execution": letter.ident})
            return False
        except BrokerError as error:
            log.warning("Not published now, and later by a sweep: %s", error, extra={"execution": letter.ident})
            return False


def _first_failure(delivery: Delivery | None) -> str:
    """As its message tells; a run that was taken from its row has none."""
    return delivery.tag.first_failure if delivery is not None and delivery.tag is not None else ""
