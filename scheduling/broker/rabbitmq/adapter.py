"""RabbitBroker implements the `Broker` Protocol with RabbitMQ. The pika library runs in a separate thread."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial

from django.utils import timezone as clock

from scheduling.broker.base import BrokerError, BrokerNode, BrokerUnavailable, Counts, Delivery, QueueUnavailable
from scheduling.broker.rabbitmq.addresses import Addresses
from scheduling.broker.rabbitmq.client import Client
from scheduling.broker.rabbitmq.consumed_queues import ConsumedQueue
from scheduling.broker.rabbitmq.declared_queues import DeclaredQueues
from scheduling.broker.rabbitmq.failed_queue import RabbitParking
from scheduling.broker.rabbitmq.ladder import LADDER
from scheduling.broker.rabbitmq.messages import Outgoing, first_failure, foreign_id, outgoing_failed, outgoing_task
from scheduling.broker.rabbitmq.probe import probe
from scheduling.broker.rabbitmq.queue import Queue
from scheduling.broker.rabbitmq.topology import WORK, Topology
from scheduling.core.broker_alarm import Alarm
from scheduling.core.messages import FailedMessage, TaskMessage, iso_utc
from scheduling.core.origin import Wanted
from scheduling.core.queues import is_work_queue
from scheduling.logs import get_logger

log = get_logger(__name__)

PATIENCE_SECONDS = 5.0


class RabbitBroker:
    """The RabbitMQ transport. It connects when a method first needs the broker. Every method has a time limit.

    Args:
        url: begins with `amqp://` or `amqps://`, see `Addresses`.
        retry_delay_ms: how long a nacked message waits before it comes back (CRON_RETRY_DELAY_MS).
        patience: the longest time in seconds to wait for an answer or for the next confirm.
        ladder: the delays, in seconds, of the wait queues that always exist.
        queue_type: `classic` or `quorum` (CRON_QUEUE_TYPE), see `Topology`.

    Raises:
        ConfError: the URL cannot be read.
    """

    embedded = False
    has_failed_queue = True

    def __init__(
        self,
        url: str,
        *,
        retry_delay_ms: int = 30_000,
        patience: float = PATIENCE_SECONDS,
        ladder: Iterable[int] = LADDER,
        queue_type: str = "classic",
    ) -> None:
        self.addresses = Addresses.read(url)
        self.topology = Topology(self.addresses.prefix, retry_delay_ms, queue_type)
        self._patience = patience
        self._queues = DeclaredQueues(self.topology, ladder)
        self._declared = False
        self._starting = threading.Lock()
        self._client: Client | None = None
        self._consumes = False
        """Whether this process has consumed a queue."""

    @property
    def product(self) -> str:
        """Name and version of the broker, such as `RabbitMQ 3.10.8`; empty before the first connection."""
        return self._client.product if self._client is not None else ""

    def declare(self, delays_ms: Iterable[int] = (), *queues: str) -> None:
        """Declare the exchange and all queues at the first call. Every new connection declares them again.

        Later calls declare new wait queues in the background. If a message is published before its wait queue exists,
        the broker returns the message. The publisher then declares the queue and sends the message again.
        """
        first = not self._declared or not all(map(self._queues.waits_for, queues))
        new = self._queues.retry(delays_ms, queues)
        if first:
            self._declared = True
            if (error := self._running().declare(self._everything()).error) is not None:
                raise error
        elif new:
            self._running().declare_soon(new)

    def delay(self, delay_ms: int, queue: str, drawn: bool = False) -> int:
        """The delay (ms) of the existing wait queue that fits best; 0 for the immediate queue, which has no delays."""
        return self._queues.delay(delay_ms, queue, drawn)

    def publish(self, messages: Sequence[TaskMessage], queue: str = "main") -> set[int]:
        """Publish persistent messages through the default exchange, and wait until the broker has confirmed them."""
        key = self._work(queue)
        return self._running().send([outgoing_task(message, "", key) for message in messages])

    def send(self, messages: Sequence[TaskMessage], queue: str = "main") -> None:
        """Hand persistent messages to the thread that publishes them."""
        key = self._work(queue)
        self._running().send_soon([outgoing_task(message, "", key) for message in messages])

    def consume(self, prefetch: Mapping[str, int]) -> None:
        """Consume on a separate connection. If this connection is lost, it is opened again."""
        if self._consumes or any(prefetch.values()):
            self._consumes = True
            for queue in prefetch:
                self._queues.use(queue)
            client = self._running()
            wanted = [ConsumedQueue(self.topology.work(queue), queue, number) for queue, number in prefetch.items()]
            client.loop.call(partial(client.subscription.want, wanted))

    def ready(self, queues: Sequence[str], now: datetime) -> bool:
        """Whether the broker has delivered messages that the caller has not taken yet."""
        return self._client is not None and self._client.subscription.waiting()

    def take(self, queues: Sequence[str], limit: int, now: datetime, wanted: Wanted | None = None) -> list[Delivery]:
        """Take messages that the broker has delivered, in the order of their turns."""
        if self._client is None:
            return []
        subscription = self._client.subscription
        return subscription.take(limit) if wanted is None else subscription.take_wanted(queues, limit, wanted)

    def release(self, deliveries: Sequence[Delivery]) -> None:
        """Keep the messages in this process, because the broker would deliver returned messages again at once."""
        if self._client is not None:
            self._client.subscription.buffer.give_back([each for each in deliveries if each.tag is not None])

    def acknowledge(self, delivery: Delivery) -> None:
        """Acknowledge in the background. If the channel is lost first, the broker delivers a copy of the message."""
        self._answer(delivery, "ack")

    def retry(self, delivery: Delivery, message: TaskMessage, delay_ms: int, error: str) -> bool:
        """Publish the message to the wait queue of its delay, then acknowledge the delivery.

        If the broker does not confirm the message, consumers start the retry from its row. A delivery of a classic
        queue is then nacked, as the original contract says. (A nack works even when publishing does not.) It comes back
        after CRON_RETRY_DELAY_MS. If the retry is due by then, the delivery starts the retry. A quorum queue would park
        a nacked delivery, so there it is acknowledged. For the immediate queue, nothing is published: the broker
        delivers the same message again.
        """
        queue = delivery.queue
        if queue == "immediate":
            self._answer(delivery, "requeue")
            return True
        seconds = round(delay_ms / 1000)
        if seconds:
            if new := self._queues.retry([delay_ms], [queue]):
                self._running().declare_soon(new)
            exchange, key = self.topology.exchange, self.topology.rung_key(queue, seconds)
        else:
            exchange, key = "", self.topology.work(queue)
        first = first_failure(delivery) or iso_utc(clock.now())
        confirmed = self._sent(outgoing_task(message, exchange, key, error, first, seconds))
        self._answer(delivery, "ack" if confirmed or self.topology.quorum else "nack")
        return confirmed

    def dead_letter(
        self, delivery: Delivery | None, message: FailedMessage, error: str, *, foreign: bool = False
    ) -> bool:
        """Publish to the failed queue.

        If the broker does not confirm the message, a later sync parks the message from its row. A foreign message has
        no row, so its delivery is nacked. A classic queue delivers it again after CRON_RETRY_DELAY_MS, and a quorum
        queue parks it.
        """
        message_id = foreign_id(message.task, delivery.message_id if delivery is not None else "") if foreign else ""
        deaths = delivery.deaths if delivery is not None else ()
        first = first_failure(delivery)
        confirmed = self._sent(outgoing_failed(message, self.topology, error, first, message_id, deaths))
        if delivery is not None:
            self._answer(delivery, "nack" if foreign and not confirmed else "ack")
        return confirmed

    def failed_queue(self) -> RabbitParking:
        """A session on a separate connection. When it is closed, all remaining messages go back in their old order."""
        return RabbitParking(self._running())

    def counts(self, queues: Iterable[str] = ()) -> Counts:
        """Count the ready messages. This also declares the queues, so a deleted queue exists again afterwards."""
        for queue in filter(is_work_queue, queues):
            self._queues.use(queue)
        named = self._queues.named
        declared = self._running().declare(
            (*self.topology.base(), *(part for queue in named for part in self.topology.named(queue)))
        )
        names = {self.topology.work(queue): queue for queue in (*WORK, *named)}
        held = {names[name]: held for name, held in declared.held.items() if name in names}
        failed = declared.held.get(self.topology.failed)
        if declared.error is not None and not held and failed is None:
            raise declared.error
        return Counts(
            {queue: said.ready for queue, said in held.items()},
            failed.ready if failed is not None else None,
            {queue: said.consumers for queue, said in held.items()},
            {name: str(error) for name, error in declared.errors.items() if isinstance(error, QueueUnavailable)},
        )

    def nodes(self) -> list[BrokerNode]:
        """Who answers at each address of CRON_BROKER_URL. Every address is asked, also if the first one works."""
        return probe(self._running().loop, self.addresses.all, self._patience)

    def left_behind(self) -> dict[str, int]:
        """The messages in queues of the other queue type that have no consumer, by the broker's name of the queue."""
        former = self.topology.former()
        names = [former.work(queue) for queue in ("main", "standalone", *self._queues.named)]
        found = self._running().count([*names, former.failed])
        return {name: held.ready for name, held in found.items() if held.ready and not held.consumers}

    @property
    def receiving(self) -> bool:  # whether a queue is consumed
        return self._client is not None and self._client.subscription.consuming

    def beat(self, body: bytes) -> None:
        """Replace the message of the beat queue, in the background."""
        self._running().beats.write(body)

    def newest_beat(self) -> bytes | None:
        """Read the message of the beat queue and leave it there."""
        return self._running().beats.read()

    @property
    def alarm(self) -> Alarm | None:
        """The alarm with which RabbitMQ has answered the last messages. It is told only to those who publish."""
        return self._client.publisher.alarm if self._client is not None else None

    def fileno(self) -> int | None:
        """The descriptor that becomes readable when the broker delivers a message; None if no queue is consumed."""
        return (
            self._client.subscription.buffer.wake_up.fileno() if self._client is not None and self._consumes else None
        )

    def close(self) -> None:
        """Disconnect. RabbitMQ then delivers the unanswered messages to other consumers."""
        with self._starting:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _running(self) -> Client:
        with self._starting:
            if self._client is None:
                self._client = Client(self.addresses, self.topology, self._to_declare, self._patience)
            return self._client

    def _everything(self) -> tuple[Queue, ...]:
        return (*self.topology.base(), *self._queues.everything())

    def _to_declare(self) -> tuple[Queue, ...]:
        """The queues to declare on a new connection: nothing if this process has only published to the usual queues."""
        return self._everything() if self._declared or self._queues.named else ()

    def _work(self, queue: str) -> str:
        """The broker's name of a work queue to which messages are published."""
        if not is_work_queue(queue):
            raise BrokerError(f"There is no queue {queue!r:.80}: plain SQL has written this name.")
        if new := self._queues.use(queue):
            self._running().declare_soon(new)
        return self.topology.work(queue)

    def _answer(self, delivery: Delivery, how: str) -> None:
        if self._client is not None and delivery.tag is not None:
            self._client.subscription.answer(delivery, how)

    def _sent(self, message: Outgoing) -> bool:
        try:
            return message.ident in self._running().send([message])
        except BrokerUnavailable as error:
            # `Outage` has logged it. A sweep publishes the message from its row.
            log.debug("Not published now: %s", error, extra={"execution": message.ident})
            return False
        except BrokerError as error:
            log.warning("Not published now, and later by a sweep: %s", error, extra={"execution": message.ident})
            return False
