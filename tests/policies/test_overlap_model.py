"""The overlap policies and the real code side by side: random occurrences, starts, ends, kills and operators' acts.

`TEST_MODEL_EXAMPLES` is the number of examples, `TEST_MODEL_STEPS` that of the steps of each. TEST_FUZZ_SEED repeats
them.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from tests.hostile import fuzz
from tests.policies.overlap_world import OUTCOMES, SLOTS, World

pytestmark = pytest.mark.django_db

EXAMPLES = int(os.environ.get("TEST_MODEL_EXAMPLES", "4"))
STEPS = int(os.environ.get("TEST_MODEL_STEPS", "40"))

SCHEDULE = st.integers(0, 3)
counts: Counter[str] = Counter()


class OverlapMachine(RuleBasedStateMachine):
    """Random steps. The world compares each row with the model after each of them."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.atomic = transaction.atomic()
        self.atomic.__enter__()
        self.world = World(self.patch)

    @rule(number=SCHEDULE)
    def fall_due(self, number: int) -> None:
        self.world.fall_due(number)

    @rule(number=SCHEDULE)
    def fall_due_again(self, number: int) -> None:
        self.world.fall_due(number)

    @rule(number=SCHEDULE)
    def run_now(self, number: int) -> None:
        self.world.run_now(number)

    @rule(
        number=st.integers(0, 1),
        ends=st.dictionaries(st.integers(0, SLOTS - 1), st.sampled_from(sorted(OUTCOMES))),
    )
    def turn(self, number: int, ends: dict[int, str]) -> None:
        self.world.turn(number, ends)

    @rule(number=st.integers(0, 1))
    def start(self, number: int) -> None:
        self.world.turn(number, {})

    @rule(number=SCHEDULE)
    def cancel(self, number: int) -> None:
        self.world.cancel(number)

    @rule(number=SCHEDULE)
    def republish(self, number: int) -> None:
        self.world.republish(number)

    @rule(policy=st.sampled_from(["skip", "wait", "replace"]))
    def change_policy(self, policy: str) -> None:
        self.world.change_policy(3, policy)

    @rule(number=st.integers(0, 1))
    def kill(self, number: int) -> None:
        self.world.kill(number)

    @rule(seconds=st.sampled_from([0.5, 3, 6, 21]))
    def pass_time(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    @rule()
    def sweep(self) -> None:
        self.world.sweep()

    def teardown(self) -> None:
        try:
            self.world.finish()
        finally:
            counts.update(self.world.counts)
            counts["examples"] += 1
            transaction.set_rollback(True)
            self.atomic.__exit__(None, None, None)
            self.patch.undo()


def test_no_schedule_runs_twice_and_no_wait_is_lost() -> None:
    counts.clear()
    wanted: Any = settings(
        max_examples=EXAMPLES, stateful_step_count=STEPS, deadline=None, database=None,
        suppress_health_check=list(HealthCheck), phases=[Phase.generate],
    )  # fmt: skip
    machine = seed(int(fuzz.choose_seed()))(OverlapMachine)
    try:
        run_state_machine_as_test(machine, settings=wanted)  # type: ignore[no-untyped-call]
    finally:
        fuzz.report("overlap model", **dict(counts))
