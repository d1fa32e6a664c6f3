"""A handler gets an exception before its time limit and can end in good order. Too much memory ends its run."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from scheduling.handlers import RegistryError, worker
from scheduling.models import Attempt, Output, SchedulerExecution
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import Commands


def one(handler: str, **columns: object) -> SchedulerExecution:
    return ManualExecutionFactory(scheduler=SchedulerFactory(rare=True, handler=handler, max_retries=0, **columns))


@pytest.mark.any_database
@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_a_soft_limit_is_raised_once_in_the_handler_and_not_in_the_next_run(commands: Commands) -> None:
    expected = {
        "tests.stops_in_time": ("succeeded", '"stopped in time"', ""),
        "tests.quick_enough": ("succeeded", '"quick"', ""),
        "tests.await_in_time": ("succeeded", '"It ran longer than its soft time limit of 0.2 s."', ""),
        "tests.stops_late": ("failed", "", "It ran longer than its soft time limit of 0.2 s."),
    }
    runs = {name: one(name) for name in expected}
    mark = one("tests.mark", params={"seconds": 0.6})  # in the child of a run with a limit
    code, log = commands.run("run_worker", "--concurrency", "1", "--max-runs", str(len(runs) + 1))
    assert code == 0, log
    ends = {name: Attempt.objects.get(execution=run) for name, run in runs.items()}
    assert {name: (end.outcome, end.result, end.error_message) for name, end in ends.items()} == expected
    assert ends["tests.stops_late"].error_class == "scheduling.core.outcome.SoftTimeLimit"
    assert "scheduling/consumer/child.py" not in ends["tests.stops_late"].traceback
    assert "time left None" in Output.objects.get(execution=runs["tests.stops_late"]).text
    assert Attempt.objects.get(execution=mark).outcome == "succeeded"


@pytest.mark.any_database
@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has /proc")
def test_a_run_whose_processes_use_too_much_memory_is_ended_and_fails(commands: Commands) -> None:
    hungry, modest = one("tests.hungry"), one("tests.modest")
    code, log = commands.run("run_worker", "--concurrency", "2", "--max-runs", "2")
    assert code == 0, log
    ends = {run.pk: Attempt.objects.get(execution=run) for run in (hungry, modest)}
    assert (ends[hungry.pk].outcome, ends[hungry.pk].error_class) == ("failed", "MemoryLimit")
    assert "more than its memory limit of 260 MiB, and was ended." in ends[hungry.pk].error_message
    assert "cleaned up" in "".join(Output.objects.filter(execution=hungry).values_list("text", flat=True))
    assert ends[modest.pk].outcome == "succeeded"


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"time_limit": 10, "soft_time_limit": 10}, "(10 s) must be below time_limit (10 s)"),
        ({"time_limit": 10, "soft_time_limit": 11}, "must be below"),
        ({"soft_time_limit": 0}, "above 0, not 0"),
        ({"soft_time_limit": float("nan")}, "not nan"),
        ({"soft_time_limit": "5"}, "not '5'"),
        ({"soft_time_limit": True}, "not True"),
        ({"memory_limit": 0}, "MiB above 0, not 0"),
        ({"memory_limit": "1 GB"}, "not '1 GB'"),
    ],
)
def test_a_limit_that_cannot_be_used_is_refused_at_registration(limits: dict[str, Any], words: str) -> None:
    with pytest.raises(RegistryError, match=r"Worker 'tests\.limited': (soft_time|memory)_limit") as caught:
        worker("tests.limited", **limits)(lambda params, run: None)
    assert words in str(caught.value)
