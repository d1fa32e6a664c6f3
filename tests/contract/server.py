"""A RabbitMQ client for the tests. It does not use the code of the project's own transport."""

from __future__ import annotations

import os
import secrets
import struct
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pika
import pytest

from scheduling.broker.rabbitmq.ladder import LADDER
from scheduling.broker.rabbitmq.topology import WORK, Topology
from scheduling.core.queues import work_queues
from tests.support import wait_for

URL = os.environ.get("TEST_BROKER_URL", "amqp://guest:guest@127.0.0.1:5672/")

URLS_4 = tuple(os.environ.get("TEST_RABBITMQ_4_URLS", "").split())
"""URLs of servers with RabbitMQ 4. `rabbitmq-node` can start them. Without a URL, RabbitMQ 4 is not tested."""

QUEUE_TYPE = os.environ.get("TEST_QUEUE_TYPE", "classic")
"""The CRON_QUEUE_TYPE of the tests' transports. `make test-rabbitmq4` runs test_transport.py with `quorum` too."""

PROBES, PROBE_SECONDS = 4, 5.0
"""How often a test tries to connect, and the seconds for one try. A server that starts may refuse the first try."""


def _parameters(url: str) -> Any:
    parameters = pika.URLParameters(url)
    parameters.socket_timeout = parameters.stack_timeout = PROBE_SECONDS
    parameters.connection_attempts, parameters.retry_delay = PROBES, 1
    parameters.heartbeat = 0  # no heartbeats, because a test can leave this connection unread for minutes
    return parameters


def _version(connection: Any) -> tuple[int, ...]:
    said = str(connection._impl.server_properties["version"])
    return tuple(int(part) for part in said.split(".")[:2])


@lru_cache
def _problem(url: str) -> str:
    name = "TEST_RABBITMQ_4_URLS" if url in URLS_4 else "TEST_BROKER_URL"
    where = f"{urlsplit(url).hostname}:{urlsplit(url).port or 5672}"
    try:
        with pika.BlockingConnection(_parameters(url)) as connection:
            major, minor = _version(connection)
    except Exception as error:
        return f"no RabbitMQ answers at {name} ({where}): {error!r}"
    if url in URLS_4 and major < 4:
        return f"{name} ({where}) is RabbitMQ {major}.{minor}"
    return ""


def require(url: str = URL) -> None:
    """Check that the server answers. If it does not answer, fail the test in CI, and skip the test elsewhere."""
    if problem := _problem(url):
        if os.environ.get("CI"):
            pytest.fail(problem)
        pytest.skip(problem)


NAMED = ("main", "reports", "reports_retry", "9-a", "mail")
"""The queues whose work queues a test may use, beside those that always exist."""


class Server:
    """A client for the queues of one test. Their names begin with a unique prefix. `close` deletes the queues."""

    def __init__(self, url: str = URL) -> None:
        self._url = url
        self.prefix = f"t{secrets.token_hex(4)}_"
        self.topology = Topology(self.prefix, queue_type=QUEUE_TYPE)
        self._connection = pika.BlockingConnection(_parameters(url))
        self.channel = self._connection.channel()

    def url(self, port: int | None = None) -> str:
        """Return the URL for the project's transport. With `port`, return the URL of the proxy on this port."""
        parts = urlsplit(self._url)
        if port is not None:
            login = parts.netloc.rpartition("@")[0]
            parts = parts._replace(netloc=f"{login}@127.0.0.1:{port}" if login else f"127.0.0.1:{port}")
        return urlunsplit(parts._replace(query=f"prefix={self.prefix}"))

    @property
    def version(self) -> tuple[int, ...]:
        """Return RabbitMQ's major and minor version numbers."""
        return _version(self._connection)

    @property
    def address(self) -> tuple[str, int]:
        """Return the server's host and port."""
        parts = urlsplit(self._url)
        return parts.hostname or "localhost", parts.port or 5672

    def name(self, queue: str) -> str:
        """Return the broker's name of `main`, `standalone` or `immediate`."""
        return self.topology.work(queue)

    def publish(self, body: bytes, queue: str | None = None, **properties: Any) -> None:
        """Publish a message. The default queue is the main queue."""
        self.channel.basic_publish("", queue or self.name("main"), body, pika.BasicProperties(**properties))

    def publish_with_float(self, body: bytes, name: str, number: float, **properties: Any) -> None:
        """Publish a message with a float in a header. Other clients send floats, but pika cannot."""
        self.publish_with_value(body, name, b"d" + struct.pack(">d", number), **properties)

    def publish_with_value(
        self, body: bytes, name: str, value: bytes, queue: str | None = None, **properties: Any
    ) -> None:
        """Publish a message with a header value that is given as encoded bytes, because pika cannot encode it."""
        headers = {**properties.pop("headers", {}), name: 2**62}
        method = pika.spec.Basic.Publish(exchange="", routing_key=queue or self.name("main"))
        header = pika.frame.Header(
            self.channel.channel_number, len(body), pika.BasicProperties(headers=headers, **properties)
        ).marshal()
        placeholder = b"l" + struct.pack(">q", 2**62)
        assert header.count(placeholder) == 1
        frames = [
            pika.frame.Method(self.channel.channel_number, method).marshal(),
            _grown(header.replace(placeholder, value), len(value) - len(placeholder)),
            pika.frame.Body(self.channel.channel_number, body).marshal(),
        ]
        self._connection._impl._output_marshaled_frames(frames)
        self._connection.process_data_events(0)

    def count(self, queue: str) -> int:
        """Return the number of ready messages of a queue, or 0 if the queue does not exist."""
        try:
            return int(self.channel.queue_declare(queue, passive=True).method.message_count)
        except pika.exceptions.ChannelClosedByBroker:
            self.reopen()
            return 0

    def exists(self, queue: str) -> bool:
        """Whether the broker has this queue."""
        try:
            self.channel.queue_declare(queue, passive=True)
        except pika.exceptions.ChannelClosedByBroker:
            self.reopen()
            return False
        return True

    def empty(self) -> None:
        """Remove all messages and keep the queues."""
        for queue in self.queues():
            try:
                self.channel.queue_purge(queue)
            except pika.exceptions.ChannelClosedByBroker:
                self.reopen()

    def queues(self) -> list[str]:
        """Return the names of all queues that a test may use."""
        # A quorum queue that is left behind takes three of the 927 file handles of RabbitMQ 3. Without a free handle,
        # RabbitMQ stops to answer.
        delays = {*LADDER, 4, 7, 45}
        of_named = {1, 2, 3, 4, 5, 7, 8, 30, 60, 120}
        types = (self.topology, self.topology.former())
        rungs = [rung for topology in types for queue in WORK for rung in topology.rungs(queue, delays)]
        base = [queue for topology in types for queue in (*topology.base(), topology.beat)]
        named = [
            queue
            for topology in types
            for work in work_queues(NAMED)
            if work not in WORK
            for queue in (
                *topology.named(work),
                *topology.rungs(work, delays if work.startswith("main.") else of_named),
            )
        ]
        return [queue.name for queue in (*base, *rungs, *named)]

    def reopen(self) -> None:
        """Open a new channel, because the broker closes a channel after an error."""
        self.channel = self._connection.channel()

    def wait_count(self, queue: str, count: int) -> None:
        """Wait until a queue has `count` ready messages."""
        wait_for(lambda: self.count(queue) == count, f"{queue} holds {count}")

    def pull(self, queue: str) -> list[tuple[pika.BasicProperties, bytes]]:
        """Take all messages out of a queue and return them."""
        found = []
        while True:
            method, properties, body = self.channel.basic_get(queue, auto_ack=True)
            if method is None:
                return found
            found.append((properties, body))

    def delete(self, queue: str) -> None:
        """Delete a queue with its messages."""
        self.channel.queue_delete(queue)
        self.reopen()  # in RabbitMQ 3.10, a channel crashes after it has used a deleted queue

    def close(self) -> None:
        """Delete the test's queues and close the connection."""
        if self._connection.is_closed:
            self._connection = pika.BlockingConnection(_parameters(self._url))
        self.channel = self._connection.channel()
        for queue in self.queues():
            self.channel.queue_delete(queue)
        for topology in (self.topology, self.topology.former()):
            self.channel.exchange_delete(topology.exchange)
        self._connection.close()


def _grown(frame: bytes, by: int) -> bytes:
    """Correct the two lengths in a header frame: of the frame's payload, and of the table of headers."""
    kind, channel, length = struct.unpack_from(">BHI", frame)
    table = 7 + 14  # after the frame's header: class, weight, body size and the flags of the properties
    (headers,) = struct.unpack_from(">I", frame, table)
    return (
        struct.pack(">BHI", kind, channel, length + by)
        + frame[7:table]
        + struct.pack(">I", headers + by)
        + frame[table + 4 :]
    )
