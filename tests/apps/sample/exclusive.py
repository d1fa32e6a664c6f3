"""Workers that must never run twice at the same time. A file shows whether they did, independently of the database."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, Field

from scheduling.handlers import RetryPolicy, Run, worker

FAST = RetryPolicy(max_retries=3, delay_ms=1000, multiplier=1.0)


class ExclusiveParams(BaseModel):
    """The directory of the files, the name of the work, and how long a run takes in seconds."""

    directory: str
    name: str = "service"
    seconds: float = Field(0, ge=0, le=600)


@contextmanager
def only_one(params: ExclusiveParams, run: Run) -> Iterator[None]:
    """Write `start <execution> <attempt> <pid>` to the file of the work; `TWICE ...` if another process does the work.

    The kernel releases the lock when the process ends, however it ends.
    """
    folder = Path(params.directory)
    with (folder / f"{params.name}.lock").open("w") as lock, (folder / f"{params.name}.txt").open("a") as file:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            word = "start"
        except BlockingIOError:
            word = "TWICE"
        file.write(f"{word} {run.execution_id} {run.attempt} {os.getpid()}\n")
        file.flush()
        yield


@worker("tests.serve", params=ExclusiveParams, retry=FAST)
def serve(params: ExclusiveParams, run: Run) -> None:
    """A service: works until it is ended."""
    with only_one(params, run):
        while True:
            time.sleep(0.05)


@worker("tests.exclusive", params=ExclusiveParams, retry=FAST)
def exclusive(params: ExclusiveParams, run: Run) -> None:
    """Works for `seconds`. Of the attempts of one run, every third one fails."""
    with only_one(params, run):
        time.sleep(params.seconds)
        if (run.execution_id + run.attempt) % 3 == 0:
            raise RuntimeError("this attempt fails")


@worker("tests.serve_deaf", params=ExclusiveParams, retry=FAST)
def serve_deaf(params: ExclusiveParams, run: Run) -> None:
    """A service that does not listen when it is asked to end."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    serve(params, run)
