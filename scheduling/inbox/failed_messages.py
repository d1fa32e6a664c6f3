"""Tells retention which discarded executions have no message in the failed queue any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime

from scheduling.broker import Broker, BrokerError, FailedQueueBusy
from scheduling.core.messages import DecodeError, decode
from scheduling.execution.foreign import message_key
from scheduling.inbox.sync import sync
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution

log = get_logger(__name__)

TRIES = 3


class FailedMessages:
    """The messages of the failed queue, read once, when the first discarded execution is about to be removed.

    Before it is read, a sync removes the messages of executions that are no longer failed. So an execution that has
    just been taken out of the inbox has no message. If a message is still there, or if the queue cannot be read
    completely, the execution stays, and the next pass tries again.

    Args:
        connect: returns the transport. It is called only if it is needed.
        problem: a sentence that says why the queue could not be read; empty if it could.
    """

    def __init__(self, connect: Callable[[], Broker], now: datetime) -> None:
        self._connect, self._now = connect, now
        self._held: set[tuple[int | None, str]] | None = None
        self._is_read = False
        self.problem = ""

    def released(self, ids: Sequence[int]) -> set[int]:
        """Which of these executions have no message in the failed queue."""
        if not self._is_read:
            self._is_read = True
            try:
                self._held = self._read(self._connect())
            except FailedQueueBusy:
                self.problem = "Another process reads the failed queue at this moment."
            except BrokerError as error:
                self.problem = str(error)
            if self.problem:
                log.warning("Retention cannot read the failed queue, and goes on in the next pass: %s", self.problem)
        if self._held is None:
            return set()
        rows = SchedulerExecution.objects.filter(pk__in=ids).values_list("pk", "execution_key")
        return {pk for pk, key in rows if (pk, key) not in self._held and (None, key) not in self._held}

    def _read(self, broker: Broker) -> set[tuple[int | None, str]] | None:
        """Pairs of an execution's id (None for a foreign message) and its key; None if the queue was not read."""
        if not broker.has_failed_queue:
            return set()
        for _ in range(TRIES):
            if sync(broker, self._now).busy:
                continue
            with broker.failed_queue() as session:
                held, number = set(), len(session.messages)
                for message in session.messages:
                    with suppress(DecodeError):
                        task = decode(message.body)
                        held.add((task.execution_id, task.execution_key))
                    if message.message_id:
                        held.add((None, message_key(message.message_id)))
            left = broker.counts().failed
            if left is not None and left <= number:
                return held
        self.problem = "The failed queue is in use, or it has more messages than can be read at once."
        return None
