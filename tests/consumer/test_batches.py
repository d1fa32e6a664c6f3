"""A consumer gathers the runs of a batch handler, calls it once for all, and settles each run by its own result."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from scheduling.execution.cancel import cancel
from scheduling.handlers.secret_params import MASK
from scheduling.models import Attempt, Output, Process, SchedulerExecution
from tests.factories import GroupFactory, ManualExecutionFactory, SchedulerFactory
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.processes, pytest.mark.django_db(transaction=True)]

Rows = list[SchedulerExecution]


def runs(handler: str, *params: dict[str, Any], **columns: Any) -> Rows:
    """Make a run of the handler for each params."""
    schedule = SchedulerFactory(rare=True, handler=handler, **columns)
    return [ManualExecutionFactory(scheduler=schedule, params=own, group=schedule.group) for own in params]


def states(rows: Rows) -> list[str]:
    """The states of the rows, in their order."""
    found = dict(SchedulerExecution.objects.values_list("pk", "state"))
    return [found[row.pk] for row in rows]


def attempts(rows: Rows) -> list[Attempt]:
    """The last attempt of each row."""
    return [Attempt.objects.filter(execution=row).order_by("-number")[0] for row in rows]


def consume(commands: Commands, count: int, *options: str) -> None:
    """Run a consumer until it has started so many runs."""
    worker = commands.start("run_worker", "--max-runs", str(count), *options)
    assert worker.wait(90) == 0, commands.log(worker)


def output(row: SchedulerExecution) -> str:
    """What is stored as the output of the execution."""
    return "".join(Output.objects.filter(execution=row).values_list("text", flat=True))


def test_each_run_is_settled_by_its_own_result(commands: Commands) -> None:
    ends = [{"value": {"row": 7}}, {"ends": "retry"}, {"ends": "never"}, {"ends": "snooze"}, {"ends": "other"}]
    rows = runs("tests.batch", *ends, {"ends": "class"}, {"ends": 7}, {}, {"value": "x"})
    consume(commands, len(rows))
    found = attempts(rows)
    assert [attempt.outcome for attempt in found] == [
        "succeeded", "failed", "failed", "snoozed", "failed", "failed", "failed", "succeeded", "succeeded",
    ]  # fmt: skip
    assert states(rows) == [
        "succeeded", "retrying", "failed", "queued", "retrying", "retrying", "failed", "succeeded", "succeeded",
    ]  # fmt: skip
    assert [attempt.result for attempt in found] == ['{"row": 7}', "", "", "", "", "", "", "", '"x"']
    assert "ends" in found[6].error_message
    assert found[1].retry_at is not None
    assert (found[1].retry_at - found[1].finished_at).total_seconds() == pytest.approx(2, abs=0.1)
    assert {attempt.pid for attempt in found} == {found[0].pid}
    called = [row.pk for row in rows if row != rows[6]]
    assert f"got 8: {called}" in output(rows[0])
    assert [output(row) for row in rows[1:]] == [""] * 8
    assert {(one.batch_leader, one.batch_attempt, one.batch_size) for one in found} == {(rows[0].pk, 1, 9)}


def test_all_end_alike_if_the_handler_raises_or_miscounts_or_its_process_dies(commands: Commands) -> None:
    raised, miscounted, died = (runs(f"tests.batch_{word}", {}, {}, {}) for word in ("raises", "miscounts", "dies"))
    nothing = runs("tests.batch_nothing", {}, {})
    coroutine = runs("tests.batch_async", {"value": 1}, {"ends": "never"})
    steps = runs("tests.batch_steps", {}, {})
    consume(commands, 15, "--concurrency", "6")
    assert states(raised) == ["retrying"] * 3
    assert len({attempt.retry_at for attempt in attempts(raised)}) == 1
    assert {attempt.error_message for attempt in attempts(raised)} == {"the warehouse is closed"}
    assert states(miscounted) == ["failed"] * 3
    assert {attempt.error_message for attempt in attempts(miscounted)} == {
        "The handler has returned 2 results for 3 runs. Return one for each run, in their order, or no list."
    }
    assert [(attempt.outcome, attempt.signal) for attempt in attempts(died)] == [("crashed", 9)] * 3
    assert states(nothing) == ["succeeded"] * 2
    assert states(coroutine) == ["succeeded", "failed"]
    assert states(steps) == ["failed"] * 2
    assert "A batch has no steps" in attempts(steps)[1].error_message


def test_a_batch_takes_no_run_of_another_group_language_or_handler(commands: Commands) -> None:
    group = GroupFactory()
    parts = [
        runs("tests.batch_nothing", {}, {}),
        runs("tests.batch_nothing", {}, {}, group=group),
        runs("tests.batch_nothing", {}, {}, language="de"),
        runs("tests.batch_nothing", {}, {}, time_limit=7),
        runs("tests.batch", {}, {}),
    ]
    consume(commands, 10)
    for rows in parts:
        assert states(rows) == ["succeeded"] * 2
        assert {(one.batch_leader, one.batch_size) for one in attempts(rows)} == {(rows[0].pk, 2)}


def test_a_batch_that_is_not_full_is_called_after_its_wait_and_reserves_one_slot(commands: Commands) -> None:
    worker = commands.start("run_worker")
    commands.ready(worker)
    rows = runs("tests.batch", *[{}] * 13)
    wait_for(lambda: states(rows) == ["succeeded"] * 13, "all have ended")
    sizes = sorted({(one.batch_leader, one.batch_size) for one in attempts(rows)})
    assert [size for _leader, size in sizes] == [10, 3]


def test_the_secrets_of_each_run_are_masked_in_the_output_and_results_of_all(commands: Commands) -> None:
    secrets = [{"secret": f"hunter-{number}", "value": "hunter-1 and hunter-2"} for number in (1, 2)]
    rows = runs("tests.batch", *secrets)
    consume(commands, 2)
    text = output(rows[0]) + "".join(attempt.result for attempt in attempts(rows))
    assert "hunter" not in text
    assert text.count(f"secret {MASK}") == 2


def lingering(commands: Commands, directory: Path, *params: dict[str, Any], **environment: str) -> tuple[Any, Rows]:
    """Start a consumer whose batch goes on until the file `enough` exists."""
    worker = commands.start("run_worker", **environment)
    commands.ready(worker)
    common = {"directory": str(directory), "seconds": 60}
    rows = runs("tests.batch_linger", *({**common, **own} for own in params))
    wait_for(lambda: any(directory.glob("batch-*.txt")), "the batch is called")
    return worker, rows


def test_a_cancelled_run_of_a_batch_succeeds_with_it_and_is_not_retried_if_it_fails(
    commands: Commands, tmp_path: Path
) -> None:
    worker, rows = lingering(commands, tmp_path, {}, {}, {"fails": True}, {"fails": True})
    for row in (rows[1], rows[2]):
        assert cancel(row.pk, "ann")
        wait_for(lambda row=row: "Its batch goes on" in output(row), "the consumer has noticed it")
    (tmp_path / "enough").touch()
    wait_for(lambda: "running" not in states(rows), "all have ended")
    assert states(rows) == ["succeeded", "succeeded", "cancelled", "retrying"]
    commands.stop(worker)


def test_a_batch_is_ended_when_each_of_its_runs_is_cancelled(commands: Commands, tmp_path: Path) -> None:
    worker, rows = lingering(commands, tmp_path, {}, {})
    for row, user in zip(rows, ("ann", "bob"), strict=True):
        assert cancel(row.pk, user)
    wait_for(lambda: states(rows) == ["cancelled"] * 2, "both are cancelled")
    assert [attempt.error_message for attempt in attempts(rows)] == ["Cancelled by ann.", "Cancelled by bob."]
    commands.stop(worker)


def test_only_the_result_of_a_lost_run_is_dropped(commands: Commands, tmp_path: Path) -> None:
    worker, rows = lingering(commands, tmp_path, {}, {}, {})
    SchedulerExecution.objects.filter(pk=rows[1].pk).update(state="failed", wake_at=None)
    wait_for(lambda: "Lost its lease" in commands.log(worker), "the consumer notices it")
    (tmp_path / "enough").touch()
    wait_for(lambda: "running" not in states(rows), "all have ended")
    assert states(rows) == ["succeeded", "failed", "succeeded"]
    assert not Attempt.objects.filter(execution=rows[1]).exists()
    wait_for(lambda: "Result dropped" in commands.log(worker), "the result is dropped")
    commands.stop(worker)


def test_a_batch_is_killed_when_all_its_runs_are_lost(commands: Commands, tmp_path: Path) -> None:
    worker, rows = lingering(commands, tmp_path, {}, {})
    SchedulerExecution.objects.filter(pk__in=[row.pk for row in rows]).update(state="failed", wake_at=None)
    wait_for(lambda: commands.log(worker).count("Result dropped") == 2, "both results are dropped")
    assert not Attempt.objects.exists()
    commands.stop(worker)


def test_the_leases_of_all_runs_of_a_batch_are_renewed(commands: Commands, tmp_path: Path) -> None:
    worker, rows = lingering(commands, tmp_path, {}, {}, {}, CRON_LEASE_SECONDS="3")

    def leases() -> list[Any]:
        return list(SchedulerExecution.objects.order_by("pk").values_list("wake_at", flat=True))

    first = leases()
    wait_for(lambda: all(later > lease for lease, later in zip(first, leases(), strict=True)), "renewed")

    def pids() -> set[int | None]:
        return set(SchedulerExecution.objects.values_list("pid", flat=True))

    # The first renewal may come before the row has the process of its run.
    wait_for(lambda: None not in pids(), "the process of each run is on record")
    assert len(pids()) == 1
    (tmp_path / "enough").touch()
    wait_for(lambda: states(rows) == ["succeeded"] * 3, "all have ended")
    commands.stop(worker)


@pytest.fixture
def gathers(commands: Commands) -> Callable[[int], tuple[Any, Rows]]:
    """Start a consumer that gathers so many runs for a batch of a hundred, for a minute."""

    def start(count: int) -> tuple[Any, Rows]:
        worker = commands.start("run_worker", CRON_LEASE_SECONDS="3")
        commands.ready(worker)
        rows = runs("tests.batch_patient", *[{}] * count)
        wait_for(lambda: states(rows) == ["running"] * count, "all are gathered")
        return worker, rows

    return start


def test_a_consumer_that_stops_calls_the_batch_that_it_gathers(
    commands: Commands, gathers: Callable[[int], tuple[Any, Rows]]
) -> None:
    worker, rows = gathers(3)
    lease = SchedulerExecution.objects.get(pk=rows[2].pk).wake_at
    wait_for(lambda: SchedulerExecution.objects.get(pk=rows[2].pk).wake_at != lease, "the lease is renewed")
    wait_for(lambda: Process.objects.get(kind="consumer").info["running"] == 1, "its slot is reported as busy")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0, commands.log(worker)
    assert states(rows) == ["succeeded"] * 3


def test_a_run_that_is_cancelled_or_lost_while_its_batch_gathers_is_left_out(
    commands: Commands, gathers: Callable[[int], tuple[Any, Rows]]
) -> None:
    worker, rows = gathers(4)
    assert cancel(rows[0].pk, "ann")
    SchedulerExecution.objects.filter(pk=rows[1].pk).update(state="failed", wake_at=None)
    wait_for(lambda: states(rows)[0] == "cancelled", "it is cancelled")
    wait_for(lambda: "Result dropped" in commands.log(worker), "the lost one is dropped")
    worker.send_signal(signal.SIGTERM)
    assert worker.wait(60) == 0, commands.log(worker)
    assert states(rows) == ["cancelled", "failed", "succeeded", "succeeded"]
    assert {one.batch_size for one in attempts(rows[2:])} == {2}
