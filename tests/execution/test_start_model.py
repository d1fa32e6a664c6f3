"""The start model and the real code side by side: random runs, ends, kills, pauses, limits, breakers and times.

`TEST_MODEL_EXAMPLES` is the number of examples, `TEST_MODEL_STEPS` that of the steps of each. TEST_FUZZ_SEED repeats
them.
"""

from __future__ import annotations

import os
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from scheduling.core.breaker import Circuit
from scheduling.core.lifecycle import OPEN_STATES
from scheduling.execution.breakers import change_circuit
from scheduling.handlers.targets import handler_named
from scheduling.models import LimitPlace, LoweredLimit, Pause, SchedulerExecution
from tests.apps.sample.modelled import NAMES
from tests.execution.start_world import QUEUES, SLOTS, World
from tests.factories import LoweredLimitFactory, PauseFactory, WorkerFactory
from tests.hostile import fuzz

pytestmark = pytest.mark.django_db

EXAMPLES = int(os.environ.get("TEST_MODEL_EXAMPLES", "6"))
STEPS = int(os.environ.get("TEST_MODEL_STEPS", "30"))
PHASES = [Phase.generate, Phase.shrink] if "TEST_MODEL_SHRINK" in os.environ else [Phase.generate]
"""A smaller example takes minutes, because each try of one is a world of its own."""

MOST_RUNS = 30
PATIENCE = timedelta(minutes=30)
"""Everything ends within this time. A run that waits is offered again after an hour without being woken."""

Run = tuple[str, str, str, str]
RUNS = st.tuples(
    st.sampled_from(NAMES), st.sampled_from("ab"), st.sampled_from(QUEUES), st.sampled_from(["high", "normal", "low"])
)

counts: Counter[str] = Counter()


class StartMachine(RuleBasedStateMachine):
    """Random steps. The world compares each start with the model."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.world = World(self.patch)

    @initialize(runs=st.lists(RUNS, min_size=6, max_size=12))
    def begin(self, runs: list[Run]) -> None:
        for run in runs:
            self.world.add(*run)

    @rule(runs=st.lists(RUNS, min_size=1, max_size=4))
    def add(self, runs: list[Run]) -> None:
        for run in runs[: MOST_RUNS - len(self.world.facts)]:
            self.world.add(*run)

    @rule(number=st.integers(0, 1), succeeds=st.booleans())
    def turn_with_ends(self, number: int, succeeds: bool) -> None:
        self.world.turn(number, dict.fromkeys(range(SLOTS), succeeds))

    @rule(number=st.integers(0, 1), ends=st.dictionaries(st.integers(0, SLOTS - 1), st.booleans()))
    def turn(self, number: int, ends: dict[int, bool]) -> None:
        self.world.turn(number, ends)

    @rule()
    def sweep(self) -> None:
        self.world.sweep()

    @rule(seconds=st.sampled_from([0.5, 2, 5, 21, 400]))
    def pass_time(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    @rule(number=st.integers(0, 1))
    def kill(self, number: int) -> None:
        self.world.kill(number)

    @rule(name=st.sampled_from([*NAMES, *QUEUES, ""]), seconds=st.sampled_from([None, 3, 30]))
    def pause(self, name: str, seconds: int | None) -> None:
        scope = {"scope": "handler" if name in NAMES else "queue" if name else "site", "name": name}
        scope |= {"type": "worker" if name in NAMES else ""}
        Pause.objects.filter(**scope).delete()
        end = None if seconds is None else self.world.now + timedelta(seconds=seconds)
        PauseFactory(**scope, paused_at=self.world.now, ends_at=end)
        self.world.pass_time(1)  # consumers know it within a second

    @rule()
    def resume(self) -> None:
        Pause.objects.filter(ends_at=None).update(ends_at=self.world.now)
        self.world.pass_time(1)

    @rule(name=st.sampled_from(NAMES), lowers=st.booleans())
    def lower(self, name: str, lowers: bool) -> None:
        LoweredLimit.objects.filter(name=name).delete()
        if lowers:
            handler = handler_named("worker", name)
            assert handler is not None
            # Without a limit of starts in the code, starts are counted from the lowering on.
            starts = 2 if handler.limit is not None and handler.limit.starts is not None else None
            LoweredLimitFactory(type="worker", name=name, at_once=1, starts=starts)
        self.world.pass_time(1)

    @rule(name=st.sampled_from(["tests.model_broken", "tests.model_both"]))
    def reset(self, name: str) -> None:
        def edit(circuit: Circuit) -> Circuit:
            return circuit.half_opened(self.world.now) if circuit.state == "open" else circuit

        change_circuit("worker", name, edit, self.world.now)

    @rule()
    def settle_down(self) -> None:
        self.world.pass_time(1)
        self.world.settle_down()

    def teardown(self) -> None:
        """Resume everything and let all runs succeed: each ends once, no place is left."""
        try:
            self._finish()
        finally:
            counts.update(self.world.counts)
            counts["examples"] += 1
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)
            self.patch.undo()

    def _finish(self) -> None:
        world = self.world
        self.resume()
        LoweredLimit.objects.all().delete()
        until = world.now + PATIENCE
        while SchedulerExecution.objects.in_state(*OPEN_STATES).exists() and world.now < until:
            world.pass_time(1)
            world.sweep()
            for number, consumer in enumerate(world.consumers):
                world.turn(number, dict.fromkeys(range(len(consumer.runs)), True))
        world.pass_time(10)
        world.sweep()
        states = SchedulerExecution.objects.values_list("pk", "state", "reason")
        assert [row for row in states if row[1] != "succeeded"] == [], "they wait, although nothing stops them"
        assert list(LimitPlace.objects.values_list("pk", "state")) == [], "places are left"
        assert {world.ended[pk] for pk in world.facts} <= {1}, "a run has succeeded twice or never"


@pytest.mark.long
def test_the_code_starts_what_the_model_lets_start() -> None:
    for name in NAMES:
        WorkerFactory(name=name)
        assert handler_named("worker", name)
    counts.clear()
    wanted: Any = settings(
        max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, database=None,
        suppress_health_check=list(HealthCheck), phases=PHASES,
    )  # fmt: skip
    machine = seed(int(fuzz.choose_seed()))(StartMachine)
    try:
        run_state_machine_as_test(machine, settings=wanted)  # type: ignore[no-untyped-call]
    finally:
        fuzz.report("start model", **dict(counts))
