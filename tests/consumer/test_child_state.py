"""A handler that changes the state of its process does not disturb the next run.

After each run, the child restores the state that it had before its first run. If the restore fails, the consumer uses
a new child for the next run.
"""

from __future__ import annotations

import json

import pytest
from django.conf import settings

from scheduling.models import Attempt, Output, SchedulerExecution
from tests.apps.sample.habits import REPLACED, RESTORED
from tests.factories import GroupFactory, ManualExecutionFactory, SchedulerFactory
from tests.support import Commands

pytestmark = [pytest.mark.processes, pytest.mark.any_database, pytest.mark.django_db(transaction=True)]


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


def test_a_run_has_the_language_of_its_schedule_or_of_the_site(commands: Commands) -> None:
    def zone(language: str) -> SchedulerExecution:
        schedule = SchedulerFactory(rare=True, handler="tests.tell", max_retries=0, language=language)
        return ManualExecutionFactory(scheduler=schedule)

    expected = {"": settings.LANGUAGE_CODE, "de": "de"}
    made = [(language, zone(language)) for language in ("de", "", "de", "")]
    code, log = commands.run("run_worker", "--concurrency", "1", "--max-runs", str(len(made)))
    assert code == 0, log
    for language, execution in made:
        (line,) = (line for line in output_of(execution) if line.startswith("OUT zone "))
        assert json.loads(line.removeprefix("OUT zone "))[2] == expected[language]


def test_a_run_knows_the_group_of_its_execution(commands: Commands) -> None:
    group = GroupFactory(name="team a")
    own = ManualExecutionFactory(scheduler__handler="tests.group", group=group)
    none = ManualExecutionFactory(scheduler__handler="tests.group", scheduler__group=group, group=None)
    code, log = commands.run("run_worker", "--concurrency", "1", "--max-runs", "2")
    assert code == 0, log
    assert output_of(own) == [f"OUT group team a {group.pk}"]
    assert output_of(none) == ["OUT group None None"]
