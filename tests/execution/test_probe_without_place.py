"""A probe of a circuit breaker that finds no place of its limit is given back, so that another run may be the probe."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.core.breaker import BreakerState, Circuit
from scheduling.execution.breakers import change_circuit, read_circuit
from scheduling.models import SchedulerExecution
from tests.execution.start_world import World
from tests.factories import WorkerFactory

pytestmark = pytest.mark.django_db

BOTH = "tests.model_both"


def test_the_next_key_has_the_probe_if_the_first_one_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    WorkerFactory(name=BOTH)
    world = World(monkeypatch)
    world.add(BOTH, "a", "main", "normal")
    world.turn(0, {})
    opened = Circuit(BreakerState.OPEN, since=world.now - timedelta(minutes=5))
    change_circuit("worker", BOTH, lambda _circuit: opened, world.now)
    world.add(BOTH, "a", "main", "normal")
    world.turn(0, {})
    holder, second = SchedulerExecution.objects.order_by("pk")
    assert (holder.state, second.state) == ("running", "queued")
    assert "It waits for a place: 1 of 1 runs" in second.reason
    assert read_circuit("worker", BOTH).probe is None
    world.pass_time(5)  # until the next probe is due
    world.add(BOTH, "b", "main", "normal")
    world.turn(1, {})
    third = SchedulerExecution.objects.order_by("pk")[2]
    assert (third.state, read_circuit("worker", BOTH).probe) == ("running", third.pk)
