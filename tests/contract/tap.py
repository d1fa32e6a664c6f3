"""Tap: a network in between that reads what RabbitMQ delivers, with the broker's own headers and times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import pika

from tests.contract.proxy import Proxy


@dataclass(frozen=True)
class Wait:
    """One stay in a wait queue, out of `x-death`; `over` is the broker's clock, in whole seconds."""

    queue: str
    count: int
    over: datetime


class Tap(Proxy):
    """A Proxy that lists the waits of everything that was delivered through it."""

    def __init__(self, host: str, port: int) -> None:
        self.waits: list[Wait] = []
        super().__init__(host, port)

    def listener(self) -> Callable[[bytes], None]:
        """Reads one connection's frames as they pass."""
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
