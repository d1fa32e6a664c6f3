"""A handler that needs something which may be down: the file `down` in its directory says that it is."""

from __future__ import annotations

import time
from pathlib import Path

from pydantic import BaseModel

from scheduling.handlers import CircuitBreaker, RetryPolicy, Run, worker

PROBE_EVERY = 2.0
PACE = 20.0


class DependingParams(BaseModel):
    """The directory of the file `down` and of the file of calls."""

    directory: str


@worker(
    "tests.depending",
    params=DependingParams,
    retry=RetryPolicy(max_retries=1, delay_ms=1000, multiplier=1.0),
    breaker=CircuitBreaker(share=0.5, window=30, least=3, probe_every=PROBE_EVERY, pace=PACE),
)
def depending(params: DependingParams, run: Run) -> None:
    """Notes the time of the call, and fails while the file `down` is there."""
    directory = Path(params.directory)
    with (directory / "calls.txt").open("ab", buffering=0) as file:
        file.write(f"{time.time()} {run.execution_id}\n".encode())
    if (directory / "down").exists():
        raise ConnectionError("the depot does not answer")
