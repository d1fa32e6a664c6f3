"""The RabbitMQ server of the tests, and a stranger's view of it."""

from __future__ import annotations

import os
import secrets
import struct
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pika
import pytest

from scheduling.broker.topology import LADDER, WORK, Topology
from tests.support import wait_for

URL = os.environ.get("TEST_BROKER_URL", "amqp://guest:guest@127.0.0.1:5672/")

URLS_4 = tuple(os.environ.get("TEST_RABBITMQ_4_URLS", "").split())
"""Servers of RabbitMQ 4 beside it; `rabbitmq-node` gets some. Where none is named, tests on them skip."""

PROBES, PROBE_SECONDS = 4, 5.0
"""A server may be starting, or hang for a moment: one bad answer must not decide for the whole run."""


def _parameters(url: str) -> Any:
    parameters = pika.URLParameters(url)
    parameters.socket_timeout = parameters.stack_timeout = PROBE_SECONDS
    parameters.connection_attempts, parameters.retry_delay = PROBES, 1
    parameters.heartbeat = 0  # a test may be busy elsewhere for minutes
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
    """Skip on a laptop, fail in CI."""
    if problem := _problem(url):
        if os.environ.get("CI"):
            pytest.fail(problem)
        pytest.skip(problem)


class Server:
    """One test's part of the server: everything behind a prefix of its own, removed at the end."""

    def __init__(self, url: str = URL) -> None:
        self._url = url
        self.prefix = f"t{secrets.token_hex(4)}_"
        self.topology = Topology(self.prefix)
        self._connection = pika.BlockingConnection(_parameters(url))
        self.channel = self._connection.channel()

    def url(self, port: int | None = None) -> str:
        """For our transport, past a proxy's port if there is one."""
        parts = urlsplit(self._url)
        if port is not None:
            login = parts.netloc.rpartition("@")[0]
            parts = parts._replace(netloc=f"{login}@127.0.0.1:{port}" if login else f"127.0.0.1:{port}")
        return urlunsplit(parts._replace(query=f"prefix={self.prefix}"))

    @property
    def version(self) -> tuple[int, ...]:
        """RabbitMQ's major and minor number."""
        return _version(self._connection)

    @property
    def address(self) -> tuple[str, int]:
        """Host and port."""
        parts = urlsplit(self._url)
        return parts.hostname or "localhost", parts.port or 5672

    def name(self, queue: str) -> str:
        """The broker's name of one of our work queues."""
        return self.topology.work(queue)

    def publish(self, body: bytes, queue: str | None = None, **properties: Any) -> None:
        """As any AMQP client does; to the main queue unless told."""
        self.channel.basic_publish("", queue or self.name("main"), body, pika.BasicProperties(**properties))

    def publish_with_float(self, body: bytes, name: str, number: float, **properties: Any) -> None:
        """With a header that is a float: other clients send those, pika does not know how."""
        headers = {**properties.pop("headers", {}), name: 2**62}
        method = pika.spec.Basic.Publish(exchange="", routing_key=self.name("main"))
        header = pika.frame.Header(
            self.channel.channel_number, len(body), pika.BasicProperties(headers=headers, **properties)
        ).marshal()
        as_integer, as_float = b"l" + struct.pack(">q", 2**62), b"d" + struct.pack(">d", number)
        assert header.count(as_integer) == 1
        frames = [
            pika.frame.Method(self.channel.channel_number, method).marshal(),
            header.replace(as_integer, as_float),
            pika.frame.Body(self.channel.channel_number, body).marshal(),
        ]
        self._connection._impl._output_marshaled_frames(frames)
        self._connection.process_data_events(0)

    def count(self, queue: str) -> int:
        """Ready messages; 0 for a queue that is not there."""
        try:
            return int(self.channel.queue_declare(queue, passive=True).method.message_count)
        except pika.exceptions.ChannelClosedByBroker:
            self.reopen()
            return 0

    def empty(self) -> None:
        """Remove all messages; the queues stay."""
        for queue in self._queues():
            try:
                self.channel.queue_purge(queue)
            except pika.exceptions.ChannelClosedByBroker:
                self.reopen()

    def _queues(self) -> list[str]:
        rungs = [rung for queue in WORK for rung in self.topology.rungs(queue, {*LADDER, 4, 7, 45})]
        return [queue.name for queue in (*self.topology.base(), *rungs)]

    def reopen(self) -> None:
        """A new channel: a refusal closes it."""
        self.channel = self._connection.channel()

    def wait_count(self, queue: str, count: int) -> None:
        """Wait until a queue holds so many ready messages."""
        wait_for(lambda: self.count(queue) == count, f"{queue} holds {count}")

    def pull(self, queue: str) -> list[tuple[pika.BasicProperties, bytes]]:
        """Take everything out, as somebody does by hand."""
        found = []
        while True:
            method, properties, body = self.channel.basic_get(queue, auto_ack=True)
            if method is None:
                return found
            found.append((properties, body))

    def delete(self, queue: str) -> None:
        """Remove a queue with all it holds."""
        self.channel.queue_delete(queue)
        self.reopen()  # 3.10 crashes a channel that used a deleted queue

    def close(self) -> None:
        """Remove what the test made."""
        if self._connection.is_closed:
            self._connection = pika.BlockingConnection(_parameters(self._url))
        self.channel = self._connection.channel()
        for queue in self._queues():
            self.channel.queue_delete(queue)
        self.channel.exchange_delete(self.topology.exchange)
        self._connection.close()
