"""Reads and changes what all processes know of the circuit breakers (`core.breaker`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from scheduling.core.breaker import Circuit
from scheduling.logs import get_logger
from scheduling.models import Breaker
from scheduling.processes.database import is_away

log = get_logger(__name__)

MOST_BREAKERS = 10_000


def read_circuit(type_: str, name: str) -> Circuit:
    """What is known of a handler's breaker. One that has no row, or whose row cannot be used, is closed."""
    return next((circuit for _pk, circuit in circuits_of(Breaker.objects.filter(type=type_, name=name))), Circuit())


def change_circuit(type_: str, name: str, edit: Callable[[Circuit], Circuit], now: datetime) -> tuple[Circuit, Circuit]:
    """Change a breaker. Returns what was known before, and what is known now. The first change makes the row.

    Args:
        edit: a pure function. It is called while the row is locked.
    """
    with transaction.atomic():
        rows = Breaker.objects.select_for_update().filter(type=type_, name=name)
        row = rows.first()
        if row is None:
            _make(type_, name, now)
            row = rows.get()
        before = _circuit(row) or Circuit(openings=0)
        after = edit(before)
        if after != before or row.used_at != now:
            row.take(after)
            row.used_at = now
            row.save()
    return before, after


def circuits_of(rows: QuerySet[Breaker]) -> Iterator[tuple[Breaker, Circuit]]:
    """What the rows say. A row that cannot be used is left out, with a warning in the log."""
    try:
        found = list(rows[:MOST_BREAKERS])
    except Exception as error:
        if is_away(error):
            raise
        found = [row for pk in rows.values_list("pk", flat=True)[:MOST_BREAKERS] for row in _readable(pk)]
    for row in found:
        circuit = _circuit(row)
        if circuit is not None:
            yield row, circuit


def _circuit(row: Breaker) -> Circuit | None:
    try:
        return row.circuit()
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        log.warning("The circuit breaker %s cannot be used: %s", row.pk, error)
        return None


def _readable(pk: int) -> list[Breaker]:
    try:
        with transaction.atomic():
            return list(Breaker.objects.filter(pk=pk))
    except Exception as error:
        if is_away(error):
            raise
        log.warning("The circuit breaker %s cannot be read: %s", pk, error)
        return []


def _make(type_: str, name: str, now: datetime) -> None:
    try:
        with transaction.atomic():
            Breaker.objects.create(type=type_, name=name, used_at=now)
    except IntegrityError:
        return  # another process was faster
