"""Workers that are `async def` functions."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

from asgiref.sync import sync_to_async
from pydantic import BaseModel

from scheduling.handlers import RetryPolicy, Run, worker
from scheduling.models import SchedulerExecution

NEVER = RetryPolicy(max_retries=0)


class AwaitParams(BaseModel):
    """The directory of the files that a run writes."""

    directory: str = ""


@worker("tests.await", retry=NEVER)
async def awaits(params: BaseModel, run: Run) -> list[object]:
    """Waits, asks the database, leaves a task behind, and returns what it has found."""
    asyncio.create_task(asyncio.sleep(600))  # noqa: RUF006 - the end of the loop cancels it
    first, _ = await asyncio.gather(SchedulerExecution.objects.acount(), asyncio.to_thread(time.sleep, 0.01))
    run.log.info("awaited")
    return [first > 0, await sync_to_async(lambda: threading.current_thread() is threading.main_thread())()]


@worker("tests.own_loop", retry=NEVER)
def own_loop(params: BaseModel, run: Run) -> str:
    """Asks for the event loop of its thread, as older code does."""
    asyncio.get_event_loop_policy().get_event_loop().close()
    return "a new loop"


@worker("tests.await_failing", retry=NEVER)
async def fails(params: BaseModel, run: Run) -> None:
    """Raises after it has waited."""
    await asyncio.sleep(0)
    raise RuntimeError("failed after an await")


@worker("tests.await_long", params=AwaitParams, retry=NEVER, time_limit=1)
async def long(params: AwaitParams, run: Run) -> None:
    """Waits longer than its time limit in a task of its own, and cleans up."""
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.sleep(600))
        try:
            await asyncio.sleep(600)
        finally:
            await asyncio.sleep(0)
            (Path(params.directory) / "cleaned.txt").write_text("cleaned")
