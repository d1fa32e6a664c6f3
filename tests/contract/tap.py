"""Tap is a proxy that reads RabbitMQ's deliveries, including the headers and times that the broker wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import pika

from tests.contract.proxy import Proxy


@dataclass(frozen=True)
class Wait:
    """One stay of a message in a wait queue, read from the header `x-death`.

    `over` is the time at which the stay ended. The broker's clock measures this time in whole seconds.
    """

    queue: str
    count: int
    over: datetime


class Tap(Proxy):
    """A proxy that lists each stay of a delivered message in a wait queue."""

    def __init__(self, host: str, port: int) -> None:
        self.waits: list[Wait] = []
        super().__init__(host, port)

    def listener(self) -> Callable[[bytes], None]:
        """Return a function that reads the frames of one connection."""
        buffer = b""

        def heard(data: bytes) -> None:
            nonlocal buffer
            buffer += data
            while True:
                consumed, frame = pika.frame.decode_frame(buffer)
                if frame is None:
                    return
                buffer = buffer[consumed:]
                if isinstance(frame, pika.frame.Header):
                    self.waits += _waits(frame.properties)

        return heard


def _waits(properties: pika.BasicProperties) -> list[Wait]:
    deaths = (properties.headers or {}).get("x-death", [])
    return [
        Wait(death["queue"], death["count"], death["time"].replace(tzinfo=UTC))
        for death in deaths
        if death["reason"] == "expired"
    ]
