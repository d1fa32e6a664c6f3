"""RecordingBroker, a transport that publishes nothing and records what it should have published."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from scheduling.broker.database import DatabaseBroker
from scheduling.core.messages import TaskMessage


class RecordingBroker(DatabaseBroker):
    """A transport outside the database. It records the published messages and confirms them if `confirms` is true."""

    embedded = False

    def __init__(self, confirms: bool = True) -> None:
        super().__init__()
        self.confirms = confirms
        self.published: list[TaskMessage] = []

    def publish(self, messages: Sequence[TaskMessage], queue: str = "main") -> set[int]:
        """Record the messages. Return the ids of the confirmed executions."""
        self.published += messages
        return {message.execution_id or 0 for message in messages} if self.confirms else set()

    def ready(self, queue: str, now: datetime) -> bool:
        """Return false. The tests do not need this method."""
        return False
