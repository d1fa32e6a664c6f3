"""A consumer passes the place of a run that has ended on within the turn in which it settles the run."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.models import LimitPlace, SchedulerExecution
from tests.execution.start_world import World
from tests.factories import PauseFactory, WorkerFactory

pytestmark = pytest.mark.django_db

KEYED = "tests.model_keyed"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """One run of a key runs in the first consumer, and runs of three queues wait for its place, in this order."""
    WorkerFactory(name=KEYED)
    world = World(monkeypatch)
    world.add(KEYED, "a", "main", "normal")
    world.turn(0, {})
    for queue in ("mail", "main", "main"):
        world.add(KEYED, "a", queue, "normal")
        world.turn(0, {})
    return world


def places() -> list[tuple[str, int | None]]:
    rows = LimitPlace.objects.order_by("pk").values_list("state", "attempt")
    return list(rows)


def test_the_next_run_starts_in_the_same_turn(world: World) -> None:
    assert places() == [("held", 1), ("waiting", None), ("waiting", None), ("waiting", None)]
    world.turn(0, {0: True})
    assert places() == [("held", 1), ("waiting", None), ("waiting", None)]
    states = SchedulerExecution.objects.order_by("pk").values_list("state", "attempt", "reason", "deferred_at")
    assert list(states[:2]) == [("succeeded", 1, "", None), ("running", 1, "", None)]


def test_the_place_of_a_run_that_a_pause_stops_is_given_to_the_next_one(world: World) -> None:
    first, second, third, fourth = SchedulerExecution.objects.order_by("pk").values_list("pk", flat=True)
    PauseFactory(of_queue=True, name="mail", paused_at=world.now, ends_at=world.now + timedelta(hours=1))
    world.pass_time(1)
    world.turn(0, {0: True})
    reasons = dict(SchedulerExecution.objects.values_list("pk", "reason"))
    assert "paused" in reasons[second]
    found = dict(LimitPlace.objects.values_list("pk", "state"))
    assert found == {third: "granted", fourth: "waiting"}
    world.turn(1, {})
    assert dict(LimitPlace.objects.values_list("pk", "state")) == {third: "held", fourth: "waiting"}
    assert SchedulerExecution.objects.get(pk=first).state == "succeeded"


def test_a_run_that_waits_for_another_key_by_now_does_not_start_with_the_place_of_this_one(world: World) -> None:
    """By another release, or because plain SQL has changed its params."""
    _first, second, third, fourth = SchedulerExecution.objects.order_by("pk").values_list("pk", flat=True)
    world.add(KEYED, "b", "main", "normal")
    world.turn(1, {})
    SchedulerExecution.objects.filter(pk=second).update(params={"region": "b"})
    world.facts[second] = KEYED, "b"
    world.turn(0, {0: True})
    reasons = dict(SchedulerExecution.objects.values_list("pk", "reason"))
    assert "with the key 'b'" in reasons[second]
    states = dict(LimitPlace.objects.filter(pk__in=[second, third, fourth]).values_list("pk", "state"))
    assert states == {second: "waiting", third: "granted", fourth: "waiting"}
