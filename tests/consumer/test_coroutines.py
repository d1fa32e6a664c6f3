"""An `async def` handler runs in a loop of its own, is ended as other handlers are, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from scheduling.consumer.coroutine import run_coroutine
from scheduling.consumer.terminated import Terminated, terminable
from scheduling.models import Attempt, Output, SchedulerExecution
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.support import Commands


def one(handler: str, **params: object) -> SchedulerExecution:
    return ManualExecutionFactory(scheduler=SchedulerFactory(rare=True, handler=handler, max_retries=0, params=params))


def output_of(execution: SchedulerExecution) -> list[str]:
    """Return the lines that the run printed and logged, without their time stamps."""
    text = "".join(Output.objects.filter(execution=execution).order_by("pk").values_list("text", flat=True))
    return [line.split(" ", 1)[1] for line in text.splitlines()]


@pytest.mark.processes
@pytest.mark.any_database
@pytest.mark.django_db(transaction=True)
def test_async_handlers_run_and_leave_their_child_as_it_was(commands: Commands, tmp_path: Path) -> None:
    def found(run: SchedulerExecution) -> Attempt:
        return Attempt.objects.get(execution=run)

    before, awaits, after, loop = map(one, ("tests.tell", "tests.await", "tests.tell", "tests.own_loop"))
    failing, long = one("tests.await_failing"), one("tests.await_long", directory=str(tmp_path))
    code, log = commands.run("run_worker", "--concurrency", "1", "--max-runs", "6")
    assert code == 0, log
    assert (found(awaits).outcome, found(awaits).result) == ("succeeded", "[true, false]"), found(awaits).traceback
    assert output_of(awaits) == ["INFO awaited"]
    assert output_of(after) == output_of(before)
    assert found(loop).result == '"a new loop"', "a handler without `async` may still ask for a loop"
    assert found(before).pid == found(awaits).pid == found(after).pid
    assert found(failing).error_message == "failed after an await"
    assert "scheduling/consumer" not in found(failing).traceback
    assert "asyncio" not in found(failing).traceback
    assert found(long).outcome == "timed_out"
    assert found(long).signal is None, "it was not killed"
    assert (tmp_path / "cleaned.txt").read_text() == "cleaned"


def test_sigterm_is_raised_where_the_coroutine_waits_and_not_in_its_loop() -> None:
    seen: list[str] = []

    async def beside() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(600)

    async def handler() -> None:
        task = asyncio.create_task(beside())
        try:
            await asyncio.sleep(600)
        except Terminated:
            current = asyncio.current_task()
            seen.append(f"terminated {current.cancelling() if current else None}")
            await asyncio.wait_for(asyncio.sleep(0), 60)
            seen.append("cleaned")
            raise
        finally:
            task.cancel()

    try:
        with pytest.raises(Terminated):
            run_coroutine(handler())
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
    assert seen == ["terminated 0", "cleaned"]


def test_a_coroutine_that_cancels_itself_is_an_error_of_its_own() -> None:
    async def handler() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(600)

    try:
        with pytest.raises(asyncio.CancelledError):
            run_coroutine(handler())
    finally:
        terminable(False)
