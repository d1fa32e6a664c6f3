"""One producer, and one consumer of each queue, in the process of a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack
from datetime import datetime
from functools import cache
from typing import Any, NamedTuple, Self

from django.db.models import Q, QuerySet
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.conf import get_conf
from scheduling.core.lifecycle import OPEN_STATES, State
from scheduling.core.queues import STANDALONE, queue_of
from scheduling.execution.claim import claim_due
from scheduling.models import Backfill, Replay, Scheduler, SchedulerExecution
from scheduling.models.backfill import OPEN as OPEN_BACKFILLS
from scheduling.models.plan import FIRST_INSTANT, PlanState
from scheduling.models.prepared import Prepared
from scheduling.models.replay import OPEN as OPEN_REPLAYS
from scheduling.processes import left_out
from scheduling.processes.guard import guard
from scheduling.producer.sweeps import sweep
from scheduling.testing.changes import Changes
from scheduling.testing.inline_consumer import InlineConsumer
from scheduling.testing.outcome import RunOutcome
from scheduling.testing.transactions import committed

MOST_RUNS = 10_000

IN_OTHER_HANDS = frozenset({State.RUNNING, State.CLAIMED, State.BLOCKED})
"""States that a sweep ends if the consumer, or the producer that was to publish the message, does not do so in time.
A sweep also lets the blocked ones go."""


class _Waiting(NamedTuple):
    id: int
    wake_at: datetime
    state: str
    queue: str


class NotTheDatabaseTransport(Exception):
    """The settings of the tests name a broker."""


class NeverEmpty(Exception):
    """So many runs were due that a handler probably asks for a new run in each run."""


class InlineFleet(AbstractContextManager["InlineFleet"]):
    """Claims, sweeps and runs what is due, one after the other. Use it in a `with` block.

    A producer sweeps every two seconds. Here, a sweep is made at the beginning, and later when a query shows that it
    would find a row. A month of schedules would otherwise take three times as long. What a query has found is used
    again until a statement of the test, of a handler or of this package may have changed it.

    Args:
        services: whether services run, too. A service should never end, so a test would wait for ever.
        raise_errors: whether an error that a handler raises leaves `work`, after its attempt was recorded.
        most_runs: after this many runs, `NeverEmpty` is raised.
    """

    def __init__(self, *, services: bool, raise_errors: bool, most_runs: int) -> None:
        if not get_conf().broker_url.startswith("database:"):
            raise NotTheDatabaseTransport(
                'Tests need no broker: set CRON_BROKER_URL = "database://" in their settings.'
            )
        # What this process has learned from the rows of an earlier test, which was rolled back, is wrong in this one.
        guard.forget()
        left_out.executions.clear()
        left_out.schedules.clear()
        self._changes = Changes()
        self._consumers: dict[str, InlineConsumer] = {}
        """The consumers that were needed so far, by queue."""
        self._services = services
        self._broker = DatabaseBroker()
        self._raise_errors, self._most_runs, self._runs = raise_errors, most_runs, 0
        self._always_sweeps = (
            services
            or Replay.objects.filter(state__in=OPEN_REPLAYS).exists()
            or Backfill.objects.filter(state__in=OPEN_BACKFILLS).exists()
        )
        self._must_sweep = self._may_claim = True
        self._swept_at: datetime | None = None
        self._next: _Waiting | None = None
        """The execution that waits for a later instant, if `work` has found one."""
        self._none_waits = False
        """Whether `work` has found that no execution waits, not even for a later instant."""
        self._planned: int | None = None
        """The count of changes up to which all schedules that are due are known to be claimed; None if unknown."""
        self._next_plan: tuple[int, datetime | None] = (-1, None)
        """The count of changes, and the first instant after it at which a schedule was then due."""

    def __enter__(self) -> Self:
        self._counting = ExitStack()
        self._counting.enter_context(self._changes.counted())
        return self

    def __exit__(self, *_error: object) -> None:
        self._counting.close()

    def work(self) -> Iterator[RunOutcome]:
        """Claim and run everything that is due now."""
        self._may_claim, self._next, self._none_waits, tried = True, None, False, None
        while True:
            now = clock.now()
            self._produce(now)
            first = self._earliest(now)
            if first is None or first.wake_at > now:
                # At an instant with a sweep, `first` may come after an execution that is in other hands.
                if self._swept_at != now:
                    self._next, self._none_waits = first, first is None
                return
            if first.state in IN_OTHER_HANDS:
                self._must_sweep = True
                continue
            outcomes = self._consumer_of(first.queue).turn()
            if outcomes is None and first.id == tried:
                return  # another process has locked the rest
            tried = first.id
            self._plan_next_turn(now)
            for outcome in outcomes or ():
                self._count()
                yield outcome
                if self._raise_errors and outcome.error is not None:
                    raise outcome.error

    def _consumer_of(self, work_queue: str) -> InlineConsumer:
        queue = queue_of(work_queue)
        if queue not in self._consumers:
            self._consumers[queue] = InlineConsumer(queue, self._changes)
        return self._consumers[queue]

    def _plan_next_turn(self, now: datetime) -> None:
        """Claim and sweep in the next turn only if the run may have changed a schedule so that it is due."""
        if self._changes.plans != self._planned:
            self._planned = self._changes.plans
            self._may_claim = _has_work(now)
        self._must_sweep = self._may_claim or self._always_sweeps

    def next_instant(self) -> datetime | None:
        """The first instant after now at which a schedule or an execution is due. Call it after `work`."""
        now = clock.now()
        found = [self._next_schedule(now)]
        if not self._none_waits and (first := self._next or self._earliest(now, later=True)) is not None:
            found.append(first.wake_at)
        return min((instant for instant in found if instant is not None), default=None)

    def _next_schedule(self, now: datetime) -> datetime | None:
        count, instant = self._next_plan
        if count != self._changes.plans or (instant is not None and instant <= now):
            rows = _next_schedules.rows(now)
            instant = rows[0][0] if rows else None
            self._next_plan = self._changes.plans, instant
        return instant

    def _produce(self, now: datetime) -> None:
        """Claim, then sweep, as a producer does: a sweep may end a pause whose occurrence a claim would record."""
        rows = self._changes.rows
        with committed():
            if self._may_claim:
                self._may_claim = False
                _claim_all(now)
            if self._must_sweep:
                self._must_sweep, self._swept_at = False, now
                if sweep(self._broker, now).planned:
                    _claim_all(now)
        # If more was changed than the times of the schedules that were claimed, another schedule may be due now.
        self._planned = self._changes.plans if self._changes.rows == rows else None

    def _count(self) -> None:
        self._runs += 1
        if self._runs > self._most_runs:
            raise NeverEmpty(f"After {self._most_runs:,} runs, more are due. A higher most_runs= allows them.")

    def _earliest(self, now: datetime, *, later: bool = False) -> _Waiting | None:
        """The execution with which something is to be done first.

        Args:
            later: whether to leave out what is due already.
        """
        states = OPEN_STATES if later or self._swept_at != now else OPEN_STATES - IN_OTHER_HANDS
        found = _first_rows(states, self._services, later).rows(now)
        return _Waiting(*found[0]) if found else None


@cache
def _first_rows(states: frozenset[State], services: bool, later: bool) -> Prepared:
    """The query for `_earliest`."""

    def build(now: datetime) -> QuerySet[Any, Any]:
        rows = SchedulerExecution.objects.in_state(*states)
        if not services:
            rows = rows.exclude(queue=STANDALONE)
        rows = rows.filter(wake_at__gt=now) if later else rows.filter(wake_at__gte=FIRST_INSTANT)
        return rows.order_by("wake_at", "id").values_list(*_Waiting._fields)[:1]

    return Prepared(build)


_next_schedules = Prepared(
    lambda now: Scheduler.objects.filter(next_run_at__gt=now).order_by("next_run_at").values_list("next_run_at")[:1]
)


def _claim_all(now: datetime) -> None:
    while claim_due(now, embedded=True).full:
        pass


def _has_work(now: datetime) -> bool:
    """Whether a schedule is due, or was changed by plain SQL so that it must be planned again."""
    return Scheduler.objects.filter(Q(plan_state=PlanState.STALE) | Q(next_run_at__lte=now)).exists()
