"""Lets waiting runs through: the probes of open circuit breakers, and the runs that wait for a half open one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db.models import Case, Q, QuerySet, Value, When

from scheduling.broker.handler_rows import runs_of
from scheduling.core.breaker import BreakerState, Circuit, CircuitBreaker
from scheduling.core.lifecycle import WAITING, State
from scheduling.core.pauses import LONGEST_WAIT, Scope
from scheduling.core.queues import work_queues
from scheduling.execution.breakers import change_circuit, circuits_of
from scheduling.execution.place_rows import not_in_line
from scheduling.execution.work_pauses import pause_for, pauses_now
from scheduling.handlers import handlers
from scheduling.handlers.targets import handler_named
from scheduling.logs import get_logger
from scheduling.models import Breaker, SchedulerExecution
from scheduling.models.prepared import any_of
from scheduling.models.used_queues import used_queues
from scheduling.processes import left_out
from scheduling.processes.set_aside import handle_each

log = get_logger(__name__)

LATE_ARRIVALS = timedelta(seconds=60)
"""A breaker that has closed is looked at for so long. A consumer may not know yet that it is closed, so a run may begin
to wait for it afterwards."""

OFFERED = timedelta(seconds=5)
"""Within this time, a run that was chosen as the probe is offered to the consumers."""

ROWS_PER_SWEEP = 1_000
MANUAL_FIRST = Case(When(trigger="manual", then=Value(0)), default=Value(1))
"""A run that a user has asked for is the next probe."""


def _open_or_late(since: datetime) -> QuerySet[Breaker]:
    """The breakers that are not closed, or that were closed after `since`."""
    recent = Q(state=BreakerState.CLOSED.value, since__gt=since)
    return Breaker.objects.filter(~Q(state=BreakerState.CLOSED.value) | recent).order_by("pk")


ANY_OPEN = any_of(_open_or_late)


def let_through(now: datetime) -> int:
    """Let waiting runs through. Returns how many. Without a handler that has a breaker, no query is made."""
    if not any(handler.breaker for handler in handlers()):
        return 0
    if not ANY_OPEN.rows(now - LATE_ARRIVALS):
        return 0
    rows = _open_or_late(now - LATE_ARRIVALS)
    return sum(_let_through(row, circuit, now) for row, circuit in circuits_of(rows))


def _let_through(row: Breaker, circuit: Circuit, now: datetime) -> int:
    """Let through the runs that wait for one breaker. Returns how many."""
    handler = handler_named(row.type, row.name)
    if handler is None:
        return 0  # another release knows it
    if handler.breaker is None or circuit.state is BreakerState.CLOSED:
        return _offer(list(_waiting(row, now).values_list("pk", flat=True)[:ROWS_PER_SWEEP]), now)
    if pause_for(row.type, row.name, "", now) is not None:
        return 0
    if circuit.state is BreakerState.OPEN:
        return _probe(row, circuit, handler.breaker, now)
    return _release(row, handler.breaker, now)


def _probe(row: Breaker, circuit: Circuit, rules: CircuitBreaker, now: datetime) -> int:
    if _is_lost(circuit, now):
        lost = circuit.probe
        _before, circuit = change_circuit(
            row.type, row.name, lambda known: known.without_probe() if known.probe == lost else known, now
        )
    if not circuit.probe_is_due(rules, now):
        return 0
    found = _waiting(row, now).order_by(MANUAL_FIRST, "wake_at").values_list("pk", flat=True).first()
    if found is None:
        return 0  # the next run that arrives is the probe
    _before, after = change_circuit(
        row.type, row.name, lambda known: known.with_probe(found, now) if known.probe_is_due(rules, now) else known, now
    )
    return _offer([found], now) if after.probe == found else 0


def _release(row: Breaker, rules: CircuitBreaker, now: datetime) -> int:
    found = list(_waiting(row, now).order_by("wake_at").values_list("pk", flat=True)[:ROWS_PER_SWEEP])
    granted: list[int] = []

    def edit(known: Circuit) -> Circuit:
        if known.state is not BreakerState.HALF_OPEN:
            return known
        if not found:
            return known.closed(now)
        granted[:] = [pk for pk in found if pk not in known.granted][: known.room(rules, now)]
        return known.granting(granted)

    _before, after = change_circuit(row.type, row.name, edit, now)
    if after.state is BreakerState.CLOSED:
        log.warning("Circuit breaker: that of the %s %r is closed.", row.type, row.name)
    return _offer(granted, now)


def _waiting(row: Breaker, now: datetime) -> QuerySet[SchedulerExecution]:
    """The runs of a handler that were put off."""
    states = [state.value for state in (State.CLAIMED, State.QUEUED)]
    rows = SchedulerExecution.objects.filter(
        state__in=states, queue__in=_open_queues(now), wake_at__gt=now,
        wake_at__lte=now + LONGEST_WAIT, deferred_at__isnull=False,
    )  # fmt: skip
    return left_out.executions.without(not_in_line(runs_of(rows, frozenset({(row.type, row.name)}))))


def _open_queues(now: datetime) -> set[str]:
    """The work queues of waiting runs that are not paused."""
    paused = [pause.name for pause in pauses_now(now) if pause.scope is Scope.QUEUE]
    return set(used_queues([State.CLAIMED, State.QUEUED])) - set(work_queues(paused))


def _is_lost(circuit: Circuit, now: datetime) -> bool:
    """Whether a probe neither waits for its start nor runs.

    It was cancelled, its consumer was killed, or it waits again, for example because its queue is paused.
    """
    if circuit.probe is None:
        return False
    rows = SchedulerExecution.objects.filter(pk=circuit.probe)
    if circuit.probe in circuit.granted:
        waiting = rows.in_state(*WAITING)
        if circuit.probed_at is None or circuit.probed_at < now - OFFERED:  # another producer may offer it right now
            waiting = waiting.filter(deferred_at__isnull=True)
        return not waiting.exists()
    return not rows.in_state(State.RUNNING).exists()


def _offer(keys: Sequence[int], now: datetime) -> int:
    def offer(pk: int) -> None:
        rows = SchedulerExecution.objects.in_state(State.CLAIMED, State.QUEUED).filter(pk=pk, wake_at__gt=now)
        rows.filter(deferred_at__isnull=False).update(wake_at=now, deferred_at=None, reason="")

    return handle_each(sorted(keys), offer, now)
