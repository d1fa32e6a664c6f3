"""Lets runs of limited handlers start when they have a place, and gives their places on when they have ended."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from scheduling.broker import Broker
from scheduling.consumer.running import Running
from scheduling.core.messages import TaskMessage
from scheduling.core.run_limit import Limit
from scheduling.execution.lowered_limits import LoweredLimits
from scheduling.execution.places import Limited, free_places, give_places, places_of, take_place, wake
from scheduling.execution.settle import Settled
from scheduling.handlers.run_config import RunConfig
from scheduling.logs import get_logger

log = get_logger(__name__)


class PlaceGate:
    """The limits of handlers, as one consumer keeps to them. A handler without a limit costs nothing.

    Args:
        broker: publishes the runs that are given a place.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker, self._lowered = broker, LoweredLimits()

    def reason_to_wait(self, message: TaskMessage, config: RunConfig, now: datetime) -> str:
        """Why a run must wait; empty if it has a place, or needs none."""
        if config.limit is None:
            return ""
        rules = self._lowered.apply(message.type, config.handler, config.limit)
        return take_place(_limited(message, config, rules), message.execution_id or 0, message.attempt, now)

    def give_on(self, settled: Iterable[tuple[Running, Settled]], now: datetime) -> None:
        """Give the places of runs that have ended to those that wait. The rows of the ended runs are committed.

        If the database refuses it, a producer does it within seconds.
        """
        ended = {
            run.execution_id: (run.delivery.message.type, run.config.handler, run.config.limit)
            for run, result in settled
            if run.config.limit is not None and result.state is not None
        }
        if not ended:
            return
        try:
            limits = {limit: ended[pk] for pk, limit in places_of(sorted(ended))}
            free_places(sorted(ended))
            rules = {limit: self._lowered.apply(*facts) for limit, facts in sorted(limits.items())}
            given = [pk for limit, own in rules.items() for pk in give_places(limit, own, now)]
            wake(given, self._broker, now)
        except Exception as error:
            log.warning("Places are given on by a producer: %s", error)


def _limited(message: TaskMessage, config: RunConfig, rules: Limit) -> Limited:
    params = {**config.default_params, **config.target_params, **message.params}
    return Limited(message.type, config.handler, rules.key_of(params), rules)
