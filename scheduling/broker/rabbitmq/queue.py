"""One queue of RabbitMQ with its arguments."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Queue:
    """One durable queue. `binding` is its routing key on the dead-letter exchange; None if the queue is not bound."""

    name: str
    arguments: dict[str, Any] = field(default_factory=dict)
    binding: str | None = None
    unlimited: bool = False
    """Whether a message may be delivered any number of times."""

    def arguments_on(self, major: int) -> dict[str, Any]:
        """The arguments for a broker of this major version.

        RabbitMQ 4 limits the deliveries of each quorum queue, unless the queue is declared with the limit -1. Before
        RabbitMQ 4 there is no such limit, and RabbitMQ 3.10 takes -1 for "drop the message at its first return".
        """
        return {**self.arguments, "x-delivery-limit": -1} if self.unlimited and major >= 4 else self.arguments
