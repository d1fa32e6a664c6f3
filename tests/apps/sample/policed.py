"""A worker whose marks say when each attempt began and ended, for tests beside a model of the policies."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from pydantic import BaseModel, Field

from scheduling.handlers import RetryPolicy, Run, worker

NAME = "tests.policed"
RETRY = RetryPolicy(max_retries=2, delay_ms=1000, multiplier=1.0)
"""A run has three attempts. It may be republished after them."""


class PolicedParams(BaseModel):
    """The directory of the files, the name of the work, how long a run takes in seconds, and how often runs fail."""

    directory: str
    name: str = "work"
    seconds: float = Field(0, ge=0, le=60)
    fails: str = "some"


def is_failure(how: str, execution: int, attempt: int) -> bool:
    """Whether an attempt fails. With "often", two of three runs fail for good; with "some", one of seven does, until it
    is republished, and every fourth attempt of the others fails."""
    if how == "often":
        return execution % 3 != 0
    return how == "some" and ((execution % 7 == 0 and attempt <= 3) or (execution + attempt) % 4 == 0)


@worker(NAME, params=PolicedParams, retry=RETRY)
def policed(params: PolicedParams, run: Run) -> None:
    """Writes `begin` or, if another process does the same work, `TWICE`; and then `end`."""
    folder = Path(params.directory)
    with (folder / f"{params.name}.lock").open("w") as lock, (folder / f"{params.name}.txt").open("ab", 0) as file:

        def mark(word: str) -> None:
            file.write(f"{word} {run.execution_id} {run.attempt} {os.getpid()} {time.time():.6f}\n".encode())

        try:
            # The kernel releases the lock when the process ends, however it ends.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mark("begin")
        except BlockingIOError:
            mark("TWICE")
        time.sleep(params.seconds)
        mark("end")
    if is_failure(params.fails, run.execution_id, run.attempt):
        raise RuntimeError("this attempt fails")
