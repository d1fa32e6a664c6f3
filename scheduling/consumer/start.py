"""Starts the attempt that a message asks for, if the execution's row allows the start."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from scheduling.broker import Delivery
from scheduling.core import inbox_sentences as say
from scheduling.core.lifecycle import State
from scheduling.core.messages import TaskMessage
from scheduling.execution import transitions
from scheduling.execution.bulk_transitions import start_many
from scheduling.execution.direct_start import is_supported, start_directly
from scheduling.execution.message_rows import MessageRow, message_rows
from scheduling.execution.start_deadlines import expire
from scheduling.models.execution import message_of
from scheduling.processes.database import is_away

MANY = 8
"""So many attempts are started together, with two statements for all of them."""


@dataclass(frozen=True)
class Arrival:
    """What happened to a message that arrived.

    Args:
        delivery: the delivery. If `started` is true, the message in the delivery was made from the row.
        started: whether the attempt has started. If so, this process owns the attempt.
        foreign: a sentence that says why the message does not belong to the row; empty if the message belongs to it.
        deferred: whether the attempt was put off: it is paused, or this consumer does not have the code for it.
    """

    delivery: Delivery
    started: bool
    foreign: str = ""
    deferred: bool = False


def begin(
    deliveries: Sequence[Delivery],
    consumer: str,
    now: datetime,
    lease_until: datetime,
    prepare: Callable[[list[TaskMessage]], None] = lambda messages: None,
    defer: Callable[[Sequence[Delivery]], Collection[int]] = lambda deliveries: (),
) -> list[Arrival]:
    """Start the attempts that messages ask for; returns what happened to each message, in the same order.

    The rows are locked in the order of the primary key, as every process does. Otherwise two processes could wait for
    each other.

    The type, the target and the params of the run always come from the row.

    A message may still name the attempt that failed. Such a message was nacked because the broker did not confirm the
    retry, or it was rejected in the immediate queue. It starts the next attempt if the row's retry is due or if the
    row waits to be published.

    Args:
        prepare: gets the messages of the attempts that will start. If it raises an error, no attempt starts.
        defer: gets the deliveries of the attempts before their start. Returns the executions that it has put off.
    """
    ordered = sorted(deliveries, key=lambda delivery: delivery.message.execution_id or 0)
    starter = _Starter(consumer, now, lease_until, prepare, defer)
    direct = starter.start_directly(ordered)
    others = [delivery for delivery in ordered if id(delivery) not in direct]
    arrivals = direct | starter.start_checked(others)
    # Copies are rare, so this costs nothing as a rule. A run that has expired would be offered again and again.
    if refused := [
        one.delivery.message for one in arrivals.values() if not (one.started or one.foreign or one.deferred)
    ]:
        expire([message.execution_id for message in refused if message.execution_id is not None], now, wait=False)
    return [arrivals[id(delivery)] for delivery in deliveries]


@dataclass(frozen=True)
class _Starter:
    """Starts attempts. The fields are the arguments of `begin`."""

    consumer: str
    now: datetime
    lease_until: datetime
    prepare: Callable[[list[TaskMessage]], None]
    defer: Callable[[Sequence[Delivery]], Collection[int]]

    def start_directly(self, deliveries: Sequence[Delivery]) -> dict[int, Arrival]:
        """Start the attempts whose messages say exactly what their rows say; returns these arrivals by delivery."""
        found = [delivery for delivery in deliveries if not delivery.from_row]
        if not found or len(found) >= MANY or not is_supported():
            return {}
        try:
            self.prepare([delivery.message for delivery in found])
        except Exception as error:
            if is_away(error):
                raise
            return {}  # a message may name another target than its row, so its row is read first
        arrivals = {}
        put_off = self.defer(found)
        for delivery in found:
            message = delivery.message
            if message.execution_id in put_off:
                arrivals[id(delivery)] = Arrival(delivery, started=False, deferred=True)
            elif (own := start_directly(message, self.consumer, self.now, self.lease_until)) is not None:
                arrivals[id(delivery)] = Arrival(replace(delivery, message=own), started=True)
        return arrivals

    def start_checked(self, deliveries: Sequence[Delivery]) -> dict[int, Arrival]:
        """Read the rows, check the messages, and start the attempts; returns the arrivals by delivery."""
        ids = [delivery.message.execution_id for delivery in deliveries if not delivery.from_row]
        rows = message_rows([pk for pk in ids if pk is not None]) if ids else {}
        checked = [_check(delivery, rows, self.now) for delivery in deliveries]
        startable = [found for found in checked if isinstance(found, Delivery)]
        self.prepare([found.message for found in startable])
        put_off = self.defer(startable)
        started = self._start([found.message for found in startable if found.message.execution_id not in put_off])
        arrivals = {}
        for delivery, found in zip(deliveries, checked, strict=True):
            if isinstance(found, Arrival):
                arrivals[id(delivery)] = found
            elif found.message.execution_id in put_off:
                arrivals[id(delivery)] = Arrival(delivery, started=False, deferred=True)
            else:
                # Of two copies of a message, the first one has started the attempt.
                won = found.message.execution_id in started
                started.discard(found.message.execution_id)
                arrivals[id(delivery)] = Arrival(found if won else delivery, won)
        return arrivals

    def _start(self, messages: Sequence[TaskMessage]) -> set[int | None]:
        """Start the attempts. Returns the executions whose attempts were started."""
        if len(messages) >= MANY:
            return {*start_many(messages, self.consumer, self.now, self.lease_until)}
        return {own.execution_id for own in messages if self._start_one(own)}

    def _start_one(self, own: TaskMessage) -> bool:
        assert own.execution_id is not None  # noqa: S101 - it comes from the row
        return transitions.start(
            own.execution_id, own.attempt, own.execution_key, self.consumer, self.now, self.lease_until
        )


def _check(delivery: Delivery, rows: dict[int, MessageRow], now: datetime) -> Delivery | Arrival:
    """The delivery with the message of the row; an arrival if the message may not start an attempt."""
    message = delivery.message
    assert message.execution_id is not None  # noqa: S101 - foreign messages get a row first
    if delivery.from_row:
        return delivery
    row = rows.get(message.execution_id)
    if problem := foreign(message, row):
        return Arrival(delivery, started=False, foreign=problem)
    assert row is not None  # noqa: S101 - a message without a row is foreign
    # A copy starts nothing. The row may change after this check, so the compare-and-set in `start` checks it again.
    if not _asks_for_next(message, row, now):
        return Arrival(delivery, started=False)
    return replace(delivery, message=message_of(row))


def foreign(message: TaskMessage, row: MessageRow | None) -> str:
    """Say why a message does not belong to the row that it names; empty if the message belongs to the row.

    For example, a new or restored database may give a new row an id that an old message names.
    """
    if row is None:
        return say.NO_EXECUTION.format(execution=message.execution_id)
    if message.execution_key != row.execution_key:
        return say.OTHER_KEY.format(execution=row.id, key=repr(message.execution_key), own=repr(row.execution_key))
    if (message.type, message.id) != (row.type, row.target_id or 0):
        own, target = f"{row.type} {row.target_id}", f"{message.type} {message.id}"
        return say.OTHER_TARGET.format(execution=row.id, own=own, target=target)
    return ""


def _asks_for_next(message: TaskMessage, row: MessageRow, now: datetime) -> bool:
    if row.attempt == message.attempt - 1:
        return True
    # NULL stands for an instant that MariaDB cannot read (0000-00-00). The run must not be lost.
    is_due = row.wake_at is None or row.wake_at <= now
    waits = row.state == State.CLAIMED.value or (row.state == State.RETRYING.value and is_due)
    return waits and row.attempt >= message.attempt
