"""Workers with a soft time limit."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

from pydantic import BaseModel

from scheduling.handlers import RetryPolicy, Run, SoftTimeLimit, worker

NEVER = RetryPolicy(max_retries=0)


@worker("tests.stops_in_time", retry=NEVER, time_limit=60, soft_time_limit=0.2)
def stops_in_time(params: BaseModel, run: Run) -> str:
    """Ends in good order."""
    while True:
        try:
            time.sleep(600)
        except Exception:
            run.log.exception("a careless loop goes on")
        except SoftTimeLimit:
            return "stopped in time" if run.time_left is not None and 0 < run.time_left < 60 else f"{run.time_left}"


@worker("tests.stops_late", retry=NEVER, time_limit=0, soft_time_limit=0.2)
def stops_late(params: BaseModel, run: Run) -> None:
    """Does not notice its limit."""
    print(f"time left {run.time_left}", flush=True)  # noqa: T201
    time.sleep(600)


@worker("tests.await_in_time", retry=NEVER, soft_time_limit=0.2)
async def await_in_time(params: BaseModel, run: Run) -> str:
    """Waits for a task until its limit, and goes on with other tasks."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.sleep(600))
            await asyncio.sleep(600)
    except* SoftTimeLimit as found:
        (error,) = found.exceptions
        said = str(error)
    async with asyncio.timeout(60):
        await asyncio.sleep(0)
    return said


PROGRAM = "import subprocess, sys, time; text = b'x' * 130_000_000; sys.argv[1:] and {start}; time.sleep(600)".format(
    start="subprocess.run([sys.executable, '-c', sys.argv[1]])"
)
"""Uses 130 MB, and runs the program that its argument holds."""


@worker("tests.hungry", retry=NEVER, memory_limit=260)
def hungry(params: BaseModel, run: Run) -> None:
    """Starts a program that starts another one. Only together, they need too much memory. It says when it is ended."""
    try:
        subprocess.run([sys.executable, "-c", PROGRAM, PROGRAM], check=True)
    finally:
        run.log.info("cleaned up")


@worker("tests.modest", retry=NEVER, memory_limit=4_000)
def modest(params: BaseModel, run: Run) -> None:
    """Needs less than its limit, for longer than a second."""
    time.sleep(1.5)


@worker("tests.quick_enough", retry=NEVER, soft_time_limit=0.5)
def quick_enough(params: BaseModel, run: Run) -> str:
    """Returns before its limit."""
    return "quick"
