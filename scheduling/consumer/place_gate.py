"""Lets runs of limited handlers start when they have a place, and gives their places on when they have ended."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple

from scheduling.broker import Broker, Delivery
from scheduling.consumer.running import Running
from scheduling.core.messages import TaskMessage
from scheduling.core.run_limit import Limit
from scheduling.execution.given_places import free_places, give_places, publish_woken, woken_rows
from scheduling.execution.lowered_limits import LoweredLimits
from scheduling.execution.places import Limited, Start, take_places
from scheduling.execution.settle import Settled
from scheduling.handlers.run_config import RunConfig
from scheduling.logs import get_logger
from scheduling.models.execution import message_of

log = get_logger(__name__)


class Wish(NamedTuple):
    """A run that is about to start."""

    message: TaskMessage
    config: RunConfig


class PlaceGate:
    """The limits of handlers, as one consumer keeps to them. A handler without a limit costs nothing.

    Args:
        broker: publishes the runs that are given a place and that this consumer does not start itself.
        queues: the work queues of this consumer.
    """

    def __init__(self, broker: Broker, queues: Collection[str]) -> None:
        self._broker, self._queues, self._lowered = broker, frozenset(queues), LoweredLimits()
        self.given: list[int] = []
        """The executions that were given a place and that no message offers yet."""
        self._locked: dict[int, Limited] = {}
        """The limits that another process had locked when a run of this consumer asked for a place."""

    def reasons_to_wait(self, wishes: Collection[Wish], now: datetime) -> dict[int, str]:
        """Why runs must wait, by execution. The text is empty if a run has a place, or needs none."""
        starts = [self._start(message, config, config.limit) for message, config in wishes if config.limit is not None]
        taken = take_places(starts, now)
        self._locked |= taken.locked
        return taken.reasons

    def give_on(self, settled: Iterable[tuple[Running, Settled]], now: datetime) -> None:
        """Give the places of runs that have ended to those that wait. The rows of the ended runs are committed.

        If the database refuses it, a producer does it within seconds.
        """
        ended: dict[int, tuple[str, str, Limit]] = {}
        attempts: dict[int, int] = {}
        for run, result in settled:
            message, config = run.delivery.message, run.config
            if config.limit is not None and result.state is not None:
                ended[run.execution_id] = message.type, config.handler, config.limit
                attempts[run.execution_id] = message.attempt
        locked, self._locked = self._locked, {}
        if not ended and not locked:
            return
        try:
            limits = {limit: ended[pk] for pk, limit in free_places(attempts).items()}
            limits |= {pk: (limited.type, limited.name, limited.rules) for pk, limited in locked.items()}
            given = give_places({limit: self._lowered.apply(*facts) for limit, facts in limits.items()}, now)
            self.given += [] if self._broker.embedded else given
        except Exception as error:
            log.warning("Places are given on by a producer: %s", error)

    def take(self, limit: int, now: datetime) -> list[Delivery]:
        """Runs that were given a place, as deliveries without a tag. They need not line up in a queue again."""
        if not self.given or limit < 1:
            return []
        rows = [row for row in woken_rows(self.given, now) if row.queue in self._queues][:limit]
        taken = {row.pk for row in rows}
        self.given = [pk for pk in self.given if pk not in taken]
        return [Delivery(message_of(row), from_row=True, queue=row.queue) for row in rows]

    def offer(self, now: datetime) -> None:
        """Publish the runs that were given a place and that this consumer does not start itself."""
        given, self.given = self.given, []
        publish_woken(given, self._broker, now)

    def _start(self, message: TaskMessage, config: RunConfig, limit: Limit) -> Start:
        rules = self._lowered.apply(message.type, config.handler, limit)
        return Start(message.execution_id or 0, message.attempt, _limited(message, config, rules))


def _limited(message: TaskMessage, config: RunConfig, rules: Limit) -> Limited:
    params = {**config.default_params, **config.target_params, **message.params}
    return Limited(message.type, config.handler, rules.key_of(params), rules)
