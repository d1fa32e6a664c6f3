"""Under `travel`, a random script leaves the rows that `run_scheduler` and `run_worker` leave as processes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.api import run
from scheduling.core.lifecycle import OPEN_STATES
from scheduling.models import Scheduler, SchedulerExecution, Worker
from scheduling.testing import travel
from tests.apps.sample.returns import RETURNS
from tests.factories import SchedulerFactory
from tests.hostile.fuzz import choose_seed
from tests.support import Commands, wait_for
from tests.testing.rows import forget, rows_of

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

STEPS = 30
KINDS = ("code", "code", "code", "later", "once", "late", "missed", "paused", "unusable")
PLAIN = ("noop", "fail", "fail_once", "never_again", "soon_again", "exit", "gives_up", "cannot_judge", "hostile")
FIT = ("give", "return", "keep", "typed")


@dataclass(frozen=True)
class Step:
    """One run or schedule of a script."""

    kind: str
    handler: str
    params: dict[str, Any]


def random_script(chance: random.Random) -> list[Step]:
    script = []
    for number in range(STEPS):
        kind, name = chance.choice(KINDS), chance.choice((*PLAIN, *FIT))
        params: dict[str, Any] = {
            "give": {"value": chance.choice([None, 0, "é\n", [1, {"a": [None]}], {"deep": {"er": 1.5}}])},
            "return": {"name": chance.choice(sorted(RETURNS))},
            "keep": {"token": f"secret-{number}"},
            "typed": {"since_days": chance.randint(1, 90)},
        }.get(name, {})
        script.append(Step(kind, f"tests.{name}", params))
    return script


def make(step: Step, now: datetime) -> int | Scheduler:
    """Ask for a run, or make a schedule. Return the id of the execution, or the schedule."""
    if step.kind in ("code", "later"):
        return run(step.handler, step.params, by="ann", delay=2.5 if step.kind == "later" else None).id
    own = {"handler": step.handler, "params": step.params, "description": f"{step}"}
    if step.kind == "once":
        return SchedulerFactory(once=True, date_time=now + timedelta(seconds=3), **own)
    made = SchedulerFactory(rare=True, timezone="UTC", **own)
    facts: dict[str, Any] = {"next_run_at": now - timedelta(seconds=5)}
    if step.kind == "missed":
        facts["next_run_at"] = datetime(now.year - 2, 1, 1, tzinfo=UTC)
    if step.kind == "paused":
        facts["status"] = False
    if step.kind == "unusable":
        facts["params"] = {"since_days": "?", "value": [], "name": 5}
    Scheduler.objects.filter(pk=made.pk).update(**facts)
    return made


def is_over(made: Sequence[int | Scheduler]) -> bool:
    schedules = [one.pk for one in made if isinstance(one, Scheduler)]
    started = SchedulerExecution.objects.filter(scheduler__in=schedules).values("scheduler").distinct().count()
    waiting = SchedulerExecution.objects.filter(state__in=[str(state) for state in OPEN_STATES])
    return started == len(schedules) and not waiting.exists()


def test_a_random_script_leaves_the_same_rows(commands: Commands) -> None:
    script = random_script(random.Random(f"{choose_seed()} testkit"))
    for step in script:
        Worker.objects.get_or_create(name=step.handler)
    begin = clock.now()
    made = [make(step, begin) for step in script]
    commands.start("run_scheduler")
    commands.start("run_worker", "--concurrency", "2")
    wait_for(lambda: is_over(made), "every run is over")
    real = [rows_of(one) for one in made]
    commands.end()
    forget()
    with travel(begin) as simulated:
        again = [make(step, begin) for step in script]
        simulated.forward(minutes=2, raise_errors=False)
        assert is_over(again), choose_seed()
    for step, rows, own in zip(script, real, map(rows_of, again), strict=True):
        assert own == rows, f"{step}, TEST_FUZZ_SEED={choose_seed()}"
