"""Lets occurrences go that wait for the success of a run which ends here (`core.after`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from datetime import datetime

from django.db import transaction

from scheduling.broker import Broker
from scheduling.consumer.running import Running
from scheduling.core.lifecycle import State
from scheduling.execution.after_runs import look, wake
from scheduling.execution.settle import Settled
from scheduling.handlers.run_config import KEEP_SECONDS
from scheduling.logs import get_logger
from scheduling.models import Scheduler
from scheduling.processes.database import is_away

log = get_logger(__name__)

MOST_AWAITED = 10_000
"""If others wait for more schedules than this, each success is taken for awaited."""

MOST_LOOKED_AT = 200
"""So many occurrences are let go by the consumer itself. A producer's next sweep lets the others go."""

DONE = (State.SUCCEEDED, State.SKIPPED)
"""The ends for which others wait. A run is skipped if its handler has found that there is nothing to do."""


class Successors:
    """Knows for which schedules others wait. It asks the database every two seconds at most, and only after a success.

    If no schedule waits for another one, that is all it costs. What is missed meanwhile, a producer's sweep finds.

    Args:
        monotonic: the clock, in seconds.
    """

    def __init__(self, broker: Broker, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._broker, self._monotonic = broker, monotonic
        self._awaited: frozenset[int] | None = frozenset()
        """The schedules that others wait for; None: too many to be remembered."""
        self._asked_at: float | None = None
        self._woken: list[int] = []

    def note(self, settled: Iterable[tuple[Running, Settled]], now: datetime) -> None:
        """Mark what waits for these runs, in the transaction that settles them. So a crash after it loses no wait.

        An error in what waits never stands in the way of the run that has succeeded.
        """
        done = {run.delivery.message.scheduler_id for run, result in settled if result.state in DONE}
        schedules = {pk for pk in done if pk is not None}
        if not schedules or not self._may_await(schedules):
            return
        try:
            with transaction.atomic():
                if awaited := self._of(schedules):
                    self._woken += wake(awaited, now)
        except Exception as error:
            if is_away(error):
                raise
            log.warning("What waits for a run is found by a producer: %s", error)

    def undone(self) -> None:
        """Say that the transaction of `note` was undone."""
        self._woken.clear()

    def let_go(self, now: datetime) -> None:
        """Let the marked occurrences start. The transaction of `note` is committed.

        If it fails, a producer does it within seconds.
        """
        woken, self._woken = self._woken, []
        if not woken:
            return
        try:
            look(woken[:MOST_LOOKED_AT], self._broker, now)
        except Exception as error:
            log.warning("What waits for a run is let go by a producer: %s", error)

    def _may_await(self, schedules: set[int]) -> bool:
        """Whether the database must be asked or written. Most turns need no savepoint for it."""
        return self._is_old() or self._awaited is None or not self._awaited.isdisjoint(schedules)

    def _is_old(self) -> bool:
        return self._asked_at is None or self._monotonic() >= self._asked_at + KEEP_SECONDS

    def _of(self, schedules: set[int]) -> set[int]:
        if self._is_old():
            rows = Scheduler.objects.filter(after_id__gt=0).order_by("after_id")
            found = list(rows.values_list("after_id", flat=True).distinct()[: MOST_AWAITED + 1])
            self._awaited = None if len(found) > MOST_AWAITED else frozenset(found)
            self._asked_at = self._monotonic()
        return schedules if self._awaited is None else schedules & self._awaited
