"""The progress of a run is sent at a bounded rate, and the last report is never lost."""

from __future__ import annotations

import pytest

from scheduling.consumer.progress import BURST, EVERY_SECONDS, ProgressLimit
from scheduling.models import SchedulerExecution
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import Commands


def test_a_tight_loop_sends_a_burst_and_then_one_report_at_a_time() -> None:
    sent: list[str] = []
    now = [0.0]
    limit = ProgressLimit(sent.append, lambda: now[0])
    for number in range(1_000):
        limit.report(str(number))
    assert len(sent) == BURST
    assert limit.unsent == "999"
    now[0] += EVERY_SECONDS
    limit.report("1000")
    limit.report("1001")
    assert sent[BURST:] == ["1000"]
    assert limit.unsent == "1001"
    now[0] += 1_000 * EVERY_SECONDS
    for number in range(1_000):
        limit.report(str(number))
    assert len(sent) == 2 * BURST + 1  # the time without reports allows no greater burst


@pytest.mark.processes
@pytest.mark.any_database
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("handler", "shown"), [("tests.count", "1000/1000"), ("tests.count_and_fail", "1000/1000")])
def test_the_last_report_is_on_record(commands: Commands, handler: str, shown: str) -> None:
    execution = ManualExecutionFactory(scheduler=SchedulerFactory(rare=True, handler=handler, max_retries=0))
    worker = commands.start("run_worker", "--max-runs", "1")
    assert worker.wait(90) == 0, commands.log(worker)
    assert SchedulerExecution.objects.get(pk=execution.pk).progress == shown
