"""Lets runs of limited handlers start when they have a place, and gives their places on when they have ended."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import NamedTuple

from scheduling.broker import Broker, Delivery
from scheduling.consumer.running import Running
from scheduling.core.messages import TaskMessage
from scheduling.execution.given_places import (
    give_places,
    held_places,
    leave_lines,
    publish_woken,
    woken_rows,
)
from scheduling.execution.key_facts import GRANTED, HELD
from scheduling.execution.key_rows import KeyRow
from scheduling.execution.lowered_limits import LoweredLimits
from scheduling.execution.message_rows import MessageRow
from scheduling.execution.passed_places import pass_places, take_passed
from scheduling.execution.place_rows import Place, remove_places
from scheduling.execution.places import Limited, LimitedAttempt, take_places
from scheduling.execution.settle import Settled
from scheduling.handlers.run_config import RunConfig
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.models.execution import message_of

log = get_logger(__name__)


class Wish(NamedTuple):
    """A run that is about to start."""

    message: TaskMessage
    config: RunConfig
    place: Place | None
    """The place that the execution has, or waits for."""


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
        self._left: dict[int, Limited] = {}
        """The limits that may have a free place, although runs wait for it."""
        self._held: dict[tuple[int, int], Place] = {}
        """Maps the executions and attempts that run here to their places."""
        self._freed: set[tuple[int, int]] = set()
        """The executions and attempts whose places were freed in the transaction that has settled them."""
        self._passed: dict[int, tuple[KeyRow, Limited]] = {}
        """Maps the executions that can have a place in this transaction to their keys, which are locked."""

    def reasons_to_wait(self, wishes: Collection[Wish], now: datetime) -> dict[int, str]:
        """Why runs must wait, by execution. The text is empty if a run has a place, or needs none."""
        starts = [self._attempt(*wish) for wish in wishes if wish.config.limit is not None]
        passed = {start.pk: start for start in starts if self._is_passed(start)}
        keys = {pk: self._passed.pop(pk)[0] for pk in passed}
        take_passed(passed, keys, now)
        others = [start for start in starts if start.pk not in passed]
        taken = take_places(others, now)
        self._left |= taken.locked
        reasons, limits = taken.reasons, taken.limits | {pk: key.pk for pk, key in keys.items()}
        for start in starts:
            if not reasons.get(start.pk):
                self._held[start.pk, start.attempt] = Place(limits[start.pk], HELD, start.attempt)
        return reasons

    def leave(self, stopped: Collection[Wish], now: datetime) -> None:
        """Take runs that a pause or a breaker stops out of their lines. Other runs of their keys get their places."""
        lined = [wish for wish in stopped if wish.config.limit is not None and wish.place is not None]
        leave_lines([wish.message.execution_id or 0 for wish in lined])
        for wish in lined:
            if wish.place is not None and wish.place.state == GRANTED:
                self._left[wish.place.limit] = self._attempt(*wish).limited

    def pass_on(self, settled: Iterable[tuple[Running, Settled]], most: int, now: datetime) -> list[Delivery]:
        """Pass the places of runs that have ended on to runs that wait, in the transaction that settles them.

        Args:
            most: how many runs may start.

        Returns:
            The runs that can have a place now, as deliveries without a tag.
        """
        if not (ended := self._ended(settled)):
            return []
        limited = {attempt.place.limit: attempt.limited for attempt in ended if attempt.place is not None}
        passed = pass_places(ended, self._queues, most, now)
        self._left |= passed.left
        self._passed = {pk: (key, limited[key.pk]) for pk, key in passed.keys.items()}
        self._freed = {(attempt.pk, attempt.attempt) for attempt in passed.freed}
        return [_delivery(one.row, one.queue) for one in passed.rows]

    def give_on(self, settled: Iterable[tuple[Running, Settled]], now: datetime) -> None:
        """Give the places that are still free to runs that wait. The rows of the ended runs are committed.

        If the database refuses it, a producer does it within seconds.
        """
        # Those that did not start, because a pause or a breaker stops them.
        self._left |= {key.pk: limited for key, limited in self._passed.values()}
        self._passed.clear()
        left, self._left = self._left, {}
        freed, self._freed = self._freed, set()
        try:
            every = {attempt.pk: attempt for attempt in self._ended(settled)}
            for attempt in every.values():
                self._held.pop((attempt.pk, attempt.attempt), None)
            if ended := {pk: one for pk, one in every.items() if (pk, one.attempt) not in freed}:
                places = held_places({attempt.pk: attempt.attempt for attempt in ended.values()})
                remove_places((place.pk, place.attempt or 0) for place in places)
                left |= {place.limit_id: ended[place.pk].limited for place in places}
            if left:
                given = give_places({limit: limited.rules for limit, limited in left.items()}, now)
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
        return [_delivery(row, row.queue) for row in rows]

    def undone(self) -> None:
        """Say that the transaction of `pass_on` and `reasons_to_wait` was undone."""
        self._freed.clear()
        self._passed.clear()

    def offer(self, now: datetime) -> None:
        """Publish the runs that were given a place and that this consumer does not start itself."""
        given, self.given = self.given, []
        publish_woken(given, self._broker, now)

    def _is_passed(self, start: LimitedAttempt) -> bool:
        """Whether a place was passed on to a run. In the code of another release, it may have had another key."""
        key, _limited = self._passed.get(start.pk, (None, None))
        return key is not None and key.columns == start.limited.columns

    def _ended(self, settled: Iterable[tuple[Running, Settled]]) -> list[LimitedAttempt]:
        found = []
        for run, result in settled:
            if run.config.limit is not None and result.state is not None:
                message = run.delivery.message
                place = self._held.get((run.execution_id, message.attempt))
                found.append(self._attempt(message, run.config, place))
        return found

    def _attempt(self, message: TaskMessage, config: RunConfig, place: Place | None) -> LimitedAttempt:
        assert config.limit is not None  # noqa: S101 - runs without a limit are left out
        rules = self._lowered.apply(message.type, config.handler, config.limit)
        params = {**config.default_params, **config.target_params, **message.params}
        limited = Limited(message.type, config.handler, rules.key_of(params), rules)
        return LimitedAttempt(message.execution_id or 0, message.attempt, limited, place)


def _delivery(row: SchedulerExecution | MessageRow, queue: str) -> Delivery:
    return Delivery(message_of(row), from_row=True, queue=queue)
