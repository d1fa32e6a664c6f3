"""Tasks for tests. Django's start finds them, because the module of this installed app has this name."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
from typing import Any

from scheduling.models import Worker
from scheduling.tasks import task_options
from scheduling.tasks.framework import framework
from tests.apps.sample.helpers import imported_task  # noqa: F401 - a task of another module becomes known, too

task: Any = __import__(framework().root, fromlist=["task"]).task


@task
def accept(*args: Any, **kwargs: Any) -> None:
    """Takes any arguments, and returns nothing."""


@task()
async def accept_async(*args: Any, **kwargs: Any) -> None:
    """The same as a coroutine."""


@task
def echo(value: Any, *, twice: bool = False) -> Any:
    """Returns its argument."""
    return [value, value] if twice else value


@task
async def echo_later(value: Any) -> Any:
    """Returns its argument after the event loop has run."""
    await asyncio.sleep(0)
    return value


@task
async def count_workers() -> list[int]:
    """Queries the database, and returns the child's pid."""
    return [await Worker.objects.acount(), os.getpid()]


@task
@task_options(max_attempts=1, time_limit=2)
async def sleep_long() -> None:
    """Cleans up when it is cancelled."""
    try:
        await asyncio.sleep(600)
    finally:
        logging.getLogger("tests").warning("cleaned up")


@task
@task_options(max_attempts=1)
def fail(text: str) -> None:
    """Fails, and is not retried."""
    raise ValueError(text)


@task
@task_options(max_attempts=3, backoff=1, time_limit=60)
def fail_often() -> None:
    """Fails at each attempt."""
    raise OSError("not yet")


@task
@task_options(max_attempts=1)
def leave(code: Any) -> None:
    """Exits the interpreter."""
    sys.exit(code)


@task
def give_function() -> Any:
    """Returns what is not JSON."""
    return lambda: True


@task
def give_much() -> str:
    """Returns more than a result may have."""
    return "x" * 70_000


def is_wanted(params: Any, run: Any) -> bool | str:
    """Has nothing to do for the argument "nothing"."""
    return params.args != ["nothing"] or "It was not wanted."


@task
@task_options(
    backoff=[1, 2, 5],
    max_attempts=3,
    time_limit=60,
    soft_time_limit=0.2,
    memory_limit=500,
    when=is_wanted,
    retry_on=OSError,
    title="Wanted",
)
def with_options(answer: str) -> str:
    """Returns its argument, or raises an error or waits for its soft limit, as the argument says."""
    if answer == "wait":
        time.sleep(600)
    if answer in ("OSError", "ValueError"):
        raise {"OSError": OSError, "ValueError": ValueError}[answer](answer)
    return answer


@task(takes_context=True)
def tell(context: Any, word: str) -> list[Any]:
    """Returns what its context says."""
    result = context.task_result
    return [word, context.attempt, result.id, result.status, result.args, len(result.worker_ids)]


variant = echo.using()
"""A second Task with the same function."""
