"""SIMULATE_FAILURE=true makes each handler of the demo fail, with the words of the original contract."""

from __future__ import annotations

import pytest

from tests.factories import ManualExecutionFactory, ReportFactory, SchedulerFactory
from tests.support import Commands

pytestmark = [pytest.mark.processes, pytest.mark.any_database, pytest.mark.django_db(transaction=True)]

WORKERS = ("demo.greet", "demo.flaky", "demo.broken", "demo.slow")


@pytest.mark.parametrize("asked", ["true", "false"])
def test_the_handlers_of_the_demo_fail_if_asked(commands: Commands, asked: str) -> None:
    names = WORKERS if asked == "true" else ("demo.greet",)
    schedules = [SchedulerFactory(rare=True, handler=name, max_retries=0) for name in names]
    report = ReportFactory(controller="demo.orders")
    schedules.append(SchedulerFactory(rare=True, worker=None, report=report, params={"orders": 3}, max_retries=0))
    runs = [ManualExecutionFactory(scheduler=schedule, params=schedule.params) for schedule in schedules]
    worker = commands.start(
        "run_worker", "--max-runs", str(len(runs)), EXTRA_APPS="cronsite.demo", SIMULATE_FAILURE=asked,
    )  # fmt: skip
    assert worker.wait(90) == 0, commands.log(worker)
    for run in runs:
        run.refresh_from_db()
        expected = ("failed", "Simulated failure for testing") if asked == "true" else ("succeeded", "")
        assert (run.state, run.error_message) == expected, run.target_name
