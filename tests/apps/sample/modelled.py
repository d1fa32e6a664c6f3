"""Handlers with a limit, a circuit breaker, both and none, for tests beside the start model (`core.start_model`)."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pydantic import BaseModel

from scheduling.handlers import CircuitBreaker, Limit, RetryPolicy, Run, worker

DOWN = "down"
"""While this file is in the directory, the handlers with a circuit breaker fail."""

BREAKER = CircuitBreaker(share=0.5, window=20, least=3, probe_every=4.0, pace=5.0)
RETRY = RetryPolicy(max_retries=19, delay_ms=1000, multiplier=1.0)


class ModelledParams(BaseModel):
    """The directory of the file of marks, the key, and how long a run works in seconds. Without one, no marks."""

    directory: str = ""
    region: str = "eu"
    seconds: float = 0.0


def _work(params: ModelledParams, run: Run, fails: bool = False) -> None:
    """Mark the begin and the end of an attempt. One write of one line: many processes append to the file."""
    directory = Path(params.directory)
    fails = fails and (directory / DOWN).exists()
    with (directory / "marks.txt").open("ab", buffering=0) as file:
        for word in ("begin", "fail" if fails else "end"):
            line = f"{word} {run.execution_id} {run.attempt} {time.time():.6f} {os.getpid()}\n"
            file.write(line.encode())
            if word == "begin":
                time.sleep(params.seconds)
    if fails:
        raise ConnectionError("the depot does not answer")


@worker("tests.model_free", params=ModelledParams, retry=RETRY)
def free(params: ModelledParams, run: Run) -> None:
    """Has no limit."""
    _work(params, run)


@worker("tests.model_keyed", params=ModelledParams, retry=RETRY, limit=Limit(at_once=1, key="region"))
def keyed(params: ModelledParams, run: Run) -> None:
    """Runs once at a time for each region."""
    _work(params, run)


@worker("tests.model_paced", params=ModelledParams, retry=RETRY, limit=Limit(at_once=2, starts=3, per=4, key="region"))
def paced(params: ModelledParams, run: Run) -> None:
    """Runs twice at a time, and starts three times within four seconds, for each region."""
    _work(params, run)


@worker("tests.model_broken", params=ModelledParams, retry=RETRY, breaker=BREAKER)
def broken(params: ModelledParams, run: Run) -> None:
    """Needs something that may be down."""
    _work(params, run, fails=True)


@worker("tests.model_both", params=ModelledParams, retry=RETRY, breaker=BREAKER, limit=Limit(at_once=1, key="region"))
def both(params: ModelledParams, run: Run) -> None:
    """Needs something that may be down, and runs once at a time for each region."""
    _work(params, run, fails=True)


NAMES = ("tests.model_free", "tests.model_keyed", "tests.model_paced", "tests.model_broken", "tests.model_both")
