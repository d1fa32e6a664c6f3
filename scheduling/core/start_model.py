"""Which waiting runs may start, and for what the others wait: pauses, circuit breakers, limits and priorities together.

The rule of each of them stands in a file of its own. This file says how they act together. Tests drive it beside the
real processes, so it is their specification: a run that starts although it should wait here is a defect, and so is a
run that goes on waiting although it may start here and a slot is free.

1. A run that a pause or its circuit breaker stops waits for it, whatever its limit says, and is not in the line of its
   key. So it keeps no other run of its key out.
2. The places that are free go to the runs that have been in the line of their key longest. A run that comes later
   starts only if a place is left. Each key has a line of its own.
3. The runs that may start get their slots in the order of their turns. A run whose consumer died goes first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from scheduling.core.breaker import Circuit, CircuitBreaker
from scheduling.core.pauses import WorkPause, pause_of
from scheduling.core.queues import queue_of, turn
from scheduling.core.run_limit import Limit


class Wait(StrEnum):
    """For what a run waits."""

    PAUSE = "pause"
    BREAKER = "breaker"
    SPAN = "span"
    """So many runs of its key as the limit allows have started within the span."""
    PLACE = "place"
    """All places of its key are taken."""
    LINE = "line"
    """The places that are left belong to runs of its key that wait longer."""


OF_LIMIT = frozenset({Wait.SPAN, Wait.PLACE, Wait.LINE})
"""A run that waits for one of these is in the line of its key."""


@dataclass(frozen=True)
class Rules:
    """The options of a handler. `limit` is the one that holds now, lowered or not."""

    limit: Limit | None = None
    breaker: CircuitBreaker | None = None


@dataclass(frozen=True)
class WaitingRun:
    """A run that is due.

    Args:
        type: the type of the handler, such as `worker`.
        work: its work queue.
        due: since when it is due.
        key: its key by the limit of its handler.
        in_line: its number in the line of its key, ascending; None if it has not asked for a place yet.
        crashed: whether its last attempt ended because its consumer died.
    """

    execution: int
    type: str
    handler: str
    work: str
    due: datetime
    key: str = ""
    in_line: int | None = None
    crashed: bool = False

    @property
    def turn(self) -> tuple[bool, datetime, int]:
        """The order in which runs get slots: the lowest first."""
        return not self.crashed, turn(self.due, self.work), self.execution


@dataclass(frozen=True)
class KeyUse:
    """How the runs of one key use its limit.

    Args:
        running: how many run.
        started: when the last ones started, in seconds since 1970, ascending.
    """

    running: int = 0
    started: tuple[float, ...] = ()


@dataclass(frozen=True)
class StartModel:
    """What decides about starts at an instant.

    Args:
        rules: maps the type and the name of each handler to its options. A handler without options may be missing.
        uses: maps type, name and key to the use of the limit. A key that is not used may be missing.
        circuits: maps the type and the name of a handler to its circuit. A closed one may be missing.
    """

    rules: Mapping[tuple[str, str], Rules] = field(default_factory=dict)
    waiting: tuple[WaitingRun, ...] = ()
    uses: Mapping[tuple[str, str, str], KeyUse] = field(default_factory=dict)
    pauses: tuple[WorkPause, ...] = ()
    circuits: Mapping[tuple[str, str], Circuit] = field(default_factory=dict)

    def wait_of(self, run: WaitingRun, now: datetime) -> Wait | None:
        """For what a run of `waiting` waits; None if it may start."""
        if (stopped := self._stop_of(run, now)) is not None:
            return stopped
        limit = self._rules_of(run).limit
        if limit is None:
            return None
        use = self.uses.get((run.type, run.handler, run.key), KeyUse())
        room = limit.room(use.running, use.started, now)
        if room > self._ahead(run, now):
            return None
        if room:
            return Wait.LINE
        return Wait.PLACE if limit.next_start(use.started, now) is None else Wait.SPAN

    def startable(self, queues: Collection[str], now: datetime) -> list[WaitingRun]:
        """The runs in these work queues that may start together, in the order in which they get slots."""
        found: list[WaitingRun] = []
        model = self
        for run in sorted(self.waiting, key=lambda run: run.turn):
            if run.work in queues and model.wait_of(run, now) is None:
                found.append(run)
                model = model.started(run, now)
        return found

    def started(self, run: WaitingRun, now: datetime) -> StartModel:
        """What decides after a run of `waiting` that may start has started."""
        rules, handler, key = self._rules_of(run), (run.type, run.handler), (run.type, run.handler, run.key)
        uses, circuits = dict(self.uses), dict(self.circuits)
        if rules.limit is not None:
            use = uses.get(key, KeyUse())
            uses[key] = KeyUse(use.running + 1, tuple(rules.limit.noted(use.started, 1, now)))
        if rules.breaker is not None and handler in circuits:
            circuits[handler] = circuits[handler].started(run.execution, now)
        left = tuple(other for other in self.waiting if other.execution != run.execution)
        return replace(self, waiting=left, uses=uses, circuits=circuits)

    def _rules_of(self, run: WaitingRun) -> Rules:
        return self.rules.get((run.type, run.handler), Rules())

    def _stop_of(self, run: WaitingRun, now: datetime) -> Wait | None:
        """What stops a run besides its limit."""
        if pause_of(self.pauses, run.type, run.handler, queue_of(run.work), now) is not None:
            return Wait.PAUSE
        breaker, circuit = self._rules_of(run).breaker, self.circuits.get((run.type, run.handler), Circuit())
        if breaker is not None and not circuit.lets_start(run.execution, breaker, now):
            return Wait.BREAKER
        return None

    def _ahead(self, run: WaitingRun, now: datetime) -> int:
        """How many runs of its key get a place before it."""
        return sum(self._stop_of(other, now) is None for other in self._line_before(run))

    def _line_before(self, run: WaitingRun) -> Iterable[WaitingRun]:
        key = (run.type, run.handler, run.key)
        for other in self.waiting:
            same = (other.type, other.handler, other.key) == key
            if same and other.in_line is not None and (run.in_line is None or other.in_line < run.in_line):
                yield other
