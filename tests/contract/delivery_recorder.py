"""A proxy that reads the headers of the messages that RabbitMQ delivers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import pika

from tests.contract.proxy import Proxy


@dataclass(frozen=True)
class Wait:
    """One wait of a message in a wait queue, read from the header `x-death`.

    `ended_at` is the end of the wait by the broker's clock, in whole seconds.
    """

    queue: str
    count: int
    ended_at: datetime


class DeliveryRecorder(Proxy):
    """A proxy that records the waits of each delivered message in `waits`."""

    def __init__(self, host: str, port: int) -> None:
        self.waits: list[Wait] = []
        super().__init__(host, port)

    def listener(self) -> Callable[[bytes], None]:
        """Return a function that reads the frames of a new connection."""
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
