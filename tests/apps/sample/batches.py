"""Batch handlers: one call gets the params of many runs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, SecretStr

from scheduling.handlers import BatchRun, NonRetryableError, RetryableError, RetryPolicy, Snooze, worker
from tests.apps.sample.marks import MarkParams

SOON = RetryPolicy(max_retries=2, delay_ms=1000, multiplier=1.0)
MANY = RetryPolicy(max_retries=19, delay_ms=1000, multiplier=1.0)


class ItemParams(BaseModel):
    """What becomes of one run: its result, or the name of an error."""

    value: Any = None
    ends: str = ""
    secret: SecretStr = SecretStr("")


ERRORS = {
    "retry": RetryableError("later", retry_after=2),
    "never": NonRetryableError("the order is closed"),
    "snooze": Snooze(30, reason="not open yet"),
    "other": ValueError("odd"),
    "class": KeyError,
}


def _entries(batch: Sequence[ItemParams]) -> list[Any]:
    return [ERRORS[params.ends] if params.ends else params.value for params in batch]


@worker("tests.batch", params=ItemParams, retry=SOON, batch_size=10, batch_wait=0.3)
def each_by_itself(batch: Sequence[ItemParams], run: BatchRun) -> list[Any]:
    """Ends each run as its params say."""
    run.log.info("got %s: %s", len(batch), [one.execution_id for one in run.runs])
    run.progress(len(batch), len(batch))
    for params in batch:
        if secret := params.secret.get_secret_value():
            print(f"secret {secret}")  # noqa: T201
    return _entries(batch)


@worker("tests.batch_nothing", batch_size=100, batch_wait=1.0)
def nothing(batch: Sequence[BaseModel], run: BatchRun) -> None:
    """Does nothing."""


@worker("tests.batch_patient", batch_size=100, batch_wait=60)
def patient(batch: Sequence[BaseModel], run: BatchRun) -> None:
    """Waits for further runs for long."""


@worker("tests.batch_raises", params=ItemParams, retry=SOON, batch_size=10, batch_wait=0.3)
def raises(batch: Sequence[ItemParams], run: BatchRun) -> None:
    """Raises for all."""
    raise RetryableError("the warehouse is closed")


@worker("tests.batch_miscounts", retry=SOON, batch_size=10, batch_wait=0.3)
def miscounts(batch: Sequence[BaseModel], run: BatchRun) -> list[int]:
    """Returns one result too few."""
    return [1] * (len(batch) - 1)


@worker("tests.batch_async", params=ItemParams, batch_size=10, batch_wait=0.3)
async def in_a_loop(batch: Sequence[ItemParams], run: BatchRun) -> list[Any]:
    """Is a coroutine."""
    return _entries(batch)


@worker("tests.batch_steps", retry=SOON, batch_size=10, batch_wait=0.3)
def steps(batch: Sequence[BaseModel], run: BatchRun) -> None:
    """Tries a step."""
    run.runs[0].step("one", int)


@worker("tests.batch_dies", retry=SOON, batch_size=10, batch_wait=0.3)
def dies(batch: Sequence[BaseModel], run: BatchRun) -> None:
    """Kills its process."""
    os.kill(os.getpid(), signal.SIGKILL)


def write(run: BatchRun, directory: str, word: str) -> None:
    """Append a line for each run to the file of the call."""
    with (Path(directory) / f"batch-{os.getpid()}-{time.time_ns()}.txt").open("a") as file:
        for one in run.runs:
            file.write(f"{word} {one.execution_id} {one.attempt}\n")


@worker("tests.batch_mark", params=MarkParams, retry=MANY, batch_size=5, batch_wait=0.3)
def mark_and_sleep(batch: Sequence[MarkParams], run: BatchRun) -> list[int]:
    """Writes a line for each run at its start and at its end."""
    write(run, batch[0].directory, "start")
    run.log.info("marked %s", len(batch))
    time.sleep(batch[0].seconds)
    write(run, batch[0].directory, "end")
    return [one.execution_id for one in run.runs]


class LingerParams(MarkParams):
    """`fails`: whether the run fails at its end."""

    fails: bool = False


@worker("tests.batch_linger", params=LingerParams, retry=SOON, batch_size=5, batch_wait=0.3, time_limit=60)
def linger(batch: Sequence[LingerParams], run: BatchRun) -> list[Any]:
    """Ends when the file `enough` exists. A run with `fails` fails then."""
    write(run, batch[0].directory, "start")
    print(f"lingers with {len(batch)}")  # noqa: T201
    deadline = time.monotonic() + batch[0].seconds
    while not (Path(batch[0].directory) / "enough").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return [RetryableError("asked to fail") if params.fails else 1 for params in batch]
