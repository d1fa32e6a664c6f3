"""Declares one queue on a channel of its own, so that a queue that is refused or silent hides no other queue."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from pika import exceptions

from scheduling.broker.base import BrokerError, BrokerUnavailable, QueueUnavailable, TopologyMismatch
from scheduling.broker.rabbitmq.io_thread import IoThread
from scheduling.broker.rabbitmq.mismatch import mismatch
from scheduling.broker.rabbitmq.queue import Queue
from scheduling.broker.rabbitmq.topology import Topology
from scheduling.logs import get_logger

log = get_logger(__name__)

PRECONDITION_FAILED, NOT_FOUND = 406, 404

_HOME_NODE = re.compile(r"home node '([^']*)'")

_SILENT: WeakKeyDictionary[Any, set[str]] = WeakKeyDictionary()
"""Maps each connection to the queues whose declaration the broker has not answered in time.

Such a declaration is not sent again on this connection until it is answered. Otherwise the tries would use up the
connection's channels. A declaration that still has time stops no other one: several threads may declare a queue at
once."""


@dataclass(frozen=True)
class Held:
    """What the broker says of a queue: the number of messages that are ready, and the number of consumers."""

    ready: int
    consumers: int


Answer = Held | BrokerError


class QueueDeclaration:
    """Declares one queue and its binding as soon as the instance is made.

    The channel is new, because the broker closes the channel of a refused declaration. Also, RabbitMQ 3.10 crashes a
    channel that still uses a queue after the queue was deleted and declared with another type.

    Args:
        queue: a queue, or the name of a queue that is only counted.
        told: called once with what the broker says of the queue, or with the error.
        patience: the time limit in seconds. The limit is needed, because a queue on a node that died, or a quorum queue
            without a leader, may never answer.
    """

    def __init__(
        self,
        loop: IoThread,
        connection: Any,
        topology: Topology,
        queue: Queue | str,
        told: Callable[[str, Answer], None],
        patience: float,
    ) -> None:
        self._loop, self._connection, self._topology, self._queue = loop, connection, topology, queue
        self.name = queue if isinstance(queue, str) else queue.name
        self._told, self._patience = told, patience
        self._over = self._sent = False
        self._held: Held | None = None
        self._timer: Any = None
        silent = _SILENT.setdefault(connection, set())
        if self.name in silent:
            self._tell(self._silence())
            return
        self._timer = loop.later(patience, self._too_late)
        self._open()

    def _open(self) -> None:
        try:
            self._connection.channel(on_open_callback=self._opened)
        except exceptions.AMQPError as error:
            self._tell(BrokerUnavailable(f"The connection was lost while queues were declared: {error!r}"))

    def _opened(self, channel: Any) -> None:
        channel.add_on_close_callback(self._closed)
        self._sent = True
        if self._over:  # the channel was opened too late
            self._note_silence()
        queue = self._queue
        # pika waits for the answer to each declaration before it sends the next one, so the order is kept.
        if isinstance(queue, str):
            channel.queue_declare(queue, passive=True, callback=lambda frame: self._declared(channel, frame))
            return
        arguments = queue.arguments_on(major_version(self._connection.server_properties))
        bound = queue.binding is not None

        def declared(frame: Any) -> None:
            self._declared(channel, frame, wait=bound)

        channel.queue_declare(queue.name, durable=True, arguments=arguments, callback=declared)
        if bound:
            channel.queue_bind(
                queue.name,
                self._topology.exchange,
                routing_key=queue.binding,
                callback=lambda _frame: self._finish(channel),
            )

    def _declared(self, channel: Any, frame: Any, *, wait: bool = False) -> None:
        self._held = Held(frame.method.message_count, frame.method.consumer_count)
        if not wait:
            self._finish(channel)

    def _finish(self, channel: Any) -> None:
        self._answered()
        if channel.is_open:
            channel.close()
        if self._held is not None:
            self._tell(self._held)

    def _closed(self, _channel: Any, reason: BaseException) -> None:
        self._answered()
        if self._over:
            return
        if not isinstance(reason, exceptions.ChannelClosedByBroker):
            self._tell(BrokerUnavailable("The connection was lost while queues were declared."))
            return
        found = mismatch(reason.reply_text) if reason.reply_code == PRECONDITION_FAILED else None
        if found is None:
            self._tell(self._refusal(reason))
        elif found.argument == "x-message-ttl" and self._topology.is_nacked(found.name):
            self._replace(found.name, found.found, found.wanted)
        else:
            self._tell(TopologyMismatch(found.sentence()))

    def _refusal(self, reason: exceptions.ChannelClosedByBroker) -> QueueUnavailable:
        home = _HOME_NODE.search(reason.reply_text) if reason.reply_code == NOT_FOUND else None
        if home is not None:
            return QueueUnavailable(f"The queue {self.name!r} cannot be used: its node {home[1]} is down.")
        return QueueUnavailable(f"The queue {self.name!r} cannot be used: {reason.reply_code} {reason.reply_text}")

    def _replace(self, name: str, old: str, new: str) -> None:
        """Replace the queue of nacked messages after CRON_RETRY_DELAY_MS was changed.

        The broker checks that the queue is empty and deletes it in one step. A queue that holds messages keeps its old
        arguments until a later declaration replaces the queue. This case is rare: the queue is nearly always empty.
        """

        def opened(channel: Any) -> None:
            def deleted(_frame: Any) -> None:
                log.info("The queue %s waits %s ms from now on (before: %s)", name, new, old)
                channel.close()
                self._open()

            def refused(_channel: Any, reason: BaseException) -> None:
                if isinstance(reason, exceptions.ChannelClosedByBroker):
                    log.warning("The queue %s still waits %s ms, not %s: it holds messages", name, old, new)
                    self._queue = name  # count it as it is
                    self._open()

            channel.add_on_close_callback(refused)
            channel.queue_delete(name, if_unused=True, if_empty=True, callback=deleted)

        self._connection.channel(on_open_callback=opened)

    def _too_late(self) -> None:
        self._timer = None
        if self._sent:
            self._note_silence()
        self._tell(self._silence())

    def _note_silence(self) -> None:
        _SILENT.setdefault(self._connection, set()).add(self.name)

    def _silence(self) -> QueueUnavailable:
        return QueueUnavailable(
            f"The queue {self.name!r} cannot be used: RabbitMQ did not answer its declaration within "
            f"{self._patience:.0f} s. Its node may be down or suspended."
        )

    def _answered(self) -> None:
        _SILENT.setdefault(self._connection, set()).discard(self.name)

    def _tell(self, answer: Answer) -> None:
        if not self._over:
            self._over = True
            self._loop.cancel(self._timer)
            self._told(self.name, answer)


def major_version(properties: Any) -> int:
    """The major version of a broker, from the properties that it sends at the login; 0 if it is unknown."""
    said = properties.get("version") if isinstance(properties, dict) else None
    found = re.match(r"\d{1,4}", said) if isinstance(said, str) else None
    return int(found[0]) if found is not None else 0
