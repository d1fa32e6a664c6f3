"""Handlers misbehave in a reused child. Each misbehaviour has its right outcome, and the runs behind it are healthy."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

import pytest

from scheduling.models import Attempt, Output, Scheduler, SchedulerExecution
from tests.apps.sample import batch_misbehaviours
from tests.apps.sample.misbehaviours import KINDS, PATCHES, Kind
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.hostile import fuzz
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

FOLLOWERS = 3
"""So many healthy runs have to follow in the same child, or in the child that replaced it."""

AT_ONCE = 8
"""So many healthy executions are queued behind a misbehaving one. The other slot takes some of them."""

ROUNDS = 6
"""If fewer than FOLLOWERS of them ran in the same child, so many further times healthy executions are queued."""


def output_of(execution: SchedulerExecution) -> list[str]:
    """Return the lines that a run printed and logged, without their time stamps."""
    text = "".join(Output.objects.filter(execution=execution).order_by("sequence").values_list("text", flat=True))
    return [line.split(" ", 1)[1] for line in text.splitlines()]


class Rounds:
    """Queues executions for one consumer and checks the healthy runs."""

    def __init__(self) -> None:
        self.healthy = SchedulerFactory(rare=True, handler="tests.tell", max_retries=0)
        self.expected: list[str] = []
        self.checked = 0
        self.wrong: list[str] = []

    def newborn(self) -> None:
        """Run a healthy execution in a new child. Its output is what every later healthy run has to print."""
        (first,) = self._run(ManualExecutionFactory.bulk(1, scheduler=self.healthy))
        self.expected = output_of(first)
        assert self.expected[:2] == ["OUT to stderr", "INFO logged"]

    def misbehave(self, handler: str, kind: str, time_limit: int) -> tuple[Attempt, int]:
        """Run a misbehaving execution and healthy ones behind it.

        Returns the misbehaving attempt, and how many healthy runs followed in the same child.
        """
        schedule: Scheduler = SchedulerFactory(
            rare=True, handler=handler, max_retries=0, params={"kind": kind}, time_limit=time_limit
        )
        bad = ManualExecutionFactory(scheduler=schedule)
        attempt: Attempt | None = None
        same = 0
        for number in range(ROUNDS):
            behind = ManualExecutionFactory.bulk(AT_ONCE, scheduler=self.healthy)
            self._run([bad, *behind])
            attempt = Attempt.objects.get(execution=bad)
            pids = [self._check(execution, kind) for execution in behind]
            same += pids.count(attempt.pid)
            replaced = not same and number >= 1
            if same >= FOLLOWERS or replaced or attempt.outcome != "succeeded":
                break
        assert attempt is not None
        return attempt, same

    def _run(self, executions: list[SchedulerExecution]) -> list[SchedulerExecution]:
        keys = [execution.pk for execution in executions]
        over = SchedulerExecution.objects.filter(pk__in=keys, finished_at__isnull=False)
        wait_for(lambda: over.count() == len(keys), "all are over", 60)
        return executions

    def _check(self, execution: SchedulerExecution, kind: str) -> int | None:
        attempt = Attempt.objects.get(execution=execution)
        if attempt.outcome != "succeeded":
            self.wrong.append(f"behind {kind}: {attempt.outcome}: {attempt.error_class}: {attempt.error_message:.300}")
        elif (found := output_of(execution)) != self.expected:
            lines = sorted({*found} ^ {*self.expected})
            self.wrong.append(f"behind {kind}: {lines!r:.1000}")
        self.checked += 1
        return attempt.pid


def every_kind(pick: random.Random, amount: int) -> Iterator[tuple[str, str, Kind]]:
    """Yield a handler and a kind with its name, `amount` times. Each kind comes as often as the others."""
    kinds = [("tests.misbehave", name, kind) for name, kind in KINDS.items()]
    kinds += [("tests.misbehave_fresh", name, kind) for name, kind in PATCHES.items()]
    chosen: list[tuple[str, str, Kind]] = []
    while len(chosen) < amount:
        chosen += pick.sample(kinds, len(kinds))
    yield from chosen[:amount]


def test_a_misbehaving_handler_harms_no_other_run(commands: Commands) -> None:
    pick, amount = fuzz.generator("misbehaviours"), fuzz.amount(fuzz.MISBEHAVIOURS, 15)
    consumer = commands.start("run_worker", "--concurrency", "2")
    commands.ready(consumer)
    rounds, seen, same_child, replaced = Rounds(), Counter[str](), 0, 0
    rounds.newborn()
    for handler, name, kind in every_kind(pick, amount):
        attempt, same = rounds.misbehave(handler, name, kind.time_limit)
        if attempt.outcome not in kind.outcomes.split():
            rounds.wrong.append(f"{name}: {attempt.outcome}, not {kind.outcomes}: {attempt.error_message:.300}")
        seen[name] += 1
        same_child, replaced = same_child + (same >= FOLLOWERS), replaced + (not same)
    assert consumer.poll() is None
    assert "A turn failed" not in commands.log(consumer)
    assert commands.stop(consumer) == 0
    fuzz.report(
        "misbehaviours", runs=seen.total(), kinds=len(seen), healthy=rounds.checked, same_child=same_child,
        replaced_child=replaced, wrong=len(rounds.wrong),
    )  # fmt: skip
    assert not rounds.wrong, "\n".join(rounds.wrong)


def test_a_misbehaving_batch_ends_all_its_runs_and_harms_no_other_run(commands: Commands) -> None:
    pick, amount = fuzz.generator("batches"), fuzz.amount(fuzz.MISBEHAVIOURS, 12)
    kinds = sorted(batch_misbehaviours.KINDS)
    chosen = [name for _ in range(-(-amount // len(kinds))) for name in pick.sample(kinds, len(kinds))][:amount]
    consumer = commands.start("run_worker", "--concurrency", "2")
    commands.ready(consumer)
    rounds = Rounds()
    rounds.newborn()
    for name in chosen:
        schedule: Scheduler = SchedulerFactory(
            rare=True, handler="tests.misbehave_batch", max_retries=0, params={"kind": name}
        )
        bad = ManualExecutionFactory.bulk(3, scheduler=schedule, params={"kind": name})
        behind = ManualExecutionFactory.bulk(2, scheduler=rounds.healthy)
        rounds._run([*bad, *behind])
        wanted = batch_misbehaviours.KINDS[name].outcomes.split()
        for attempt in Attempt.objects.filter(execution__in=bad):
            if attempt.outcome not in wanted or attempt.batch_size is None:
                rounds.wrong.append(f"{name}: {attempt.outcome}, not {wanted}: {attempt.error_message:.300}")
        for execution in behind:
            rounds._check(execution, name)
    assert consumer.poll() is None
    assert "A turn failed" not in commands.log(consumer)
    assert commands.stop(consumer) == 0
    fuzz.report("batches", runs=amount, healthy=rounds.checked, wrong=len(rounds.wrong))
    assert not rounds.wrong, "\n".join(rounds.wrong)
