"""Remembers which queues cannot be used, so that each outage of queues is logged once and not at each declaration."""

from __future__ import annotations

from scheduling.broker.base import BrokerUnavailable, TopologyMismatch
from scheduling.broker.rabbitmq.declaration import Declared, in_one
from scheduling.broker.rabbitmq.outage import Outage
from scheduling.logs import get_logger

log = get_logger(__name__)


class QueueStates:
    """The queues that could not be used at their last declaration."""

    def __init__(self, outage: Outage) -> None:
        self._outage = outage
        self._away: dict[str, BrokerUnavailable] = {}
        self._wrong: dict[str, str] = {}

    @property
    def away(self) -> set[str]:
        """The names of the queues that did not answer or were refused for now."""
        return set(self._away)

    def learn(self, declared: Declared) -> None:
        """Take over the result of a declaration, and log what is new."""
        for name in declared.held:
            self._away.pop(name, None)
            self._wrong.pop(name, None)
        if isinstance(declared.lost, TopologyMismatch):
            self._mismatched("the exchange", declared.lost)
        for name, error in declared.errors.items():
            if isinstance(error, TopologyMismatch):
                self._mismatched(name, error)
            elif isinstance(error, BrokerUnavailable):
                self._away[name] = error
        away = in_one(list(self._away.values()))
        if isinstance(away, BrokerUnavailable):
            self._outage.begins("queues", away)
        else:
            self._outage.ends("queues")

    def _mismatched(self, name: str, error: TopologyMismatch) -> None:
        if self._wrong.get(name) != str(error):
            self._wrong[name] = str(error)
            log.error("%s", error)
