"""A handler that changes the state of its process does not disturb the next run.

After each run, the child restores the state that it had before its first run. If the restore fails, the consumer uses
a new child for the next run.
"""

from __future__ import annotations

import pytest

from scheduling.models import Attempt, Output, SchedulerExecution
from tests.apps.sample.habits import REPLACED, RESTORED
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import Commands

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]


def one(handler: str, **params: object) -> SchedulerExecution:
    return ManualExecutionFactory(scheduler=SchedulerFactory(rare=True, handler=handler, max_retries=0, params=params))


def output_of(execution: SchedulerExecution) -> list[str]:
    """Return the lines that the run printed and logged, without their time stamps."""
    text = "".join(Output.objects.filter(execution=execution).order_by("pk").values_list("text", flat=True))
    return [line.split(" ", 1)[1] for line in text.splitlines()]


def test_the_next_run_finds_the_first_state_of_a_process(commands: Commands) -> None:
    undisturbed = one("tests.tell")
    pairs = {name: (one("tests.habit", name=name), one("tests.tell")) for name in [*RESTORED, *REPLACED]}
    runs = str(2 * len(pairs) + 1)
    code, log = commands.run("run_worker", "--concurrency", "1", "--max-runs", runs)
    assert code == 0, log
    expected = output_of(undisturbed)
    assert expected[:2] == ["OUT to stderr", "INFO logged"]
    assert len(expected) == 20
    for name, (habit, after) in pairs.items():
        attempt, following = Attempt.objects.get(execution=habit), Attempt.objects.get(execution=after)
        assert attempt.outcome == ("failed" if name == "failure" else "succeeded"), (name, attempt.error_message)
        assert following.outcome == "succeeded", (name, following.error_message)
        assert output_of(after) == expected, name
        assert (attempt.pid == following.pid) == (name in RESTORED), name
