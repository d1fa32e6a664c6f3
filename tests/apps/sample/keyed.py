"""Handlers with a limit for each key. They note when they begin and end."""

from __future__ import annotations

import os
import time
from pathlib import Path

from pydantic import BaseModel

from scheduling.handlers import Limit, RetryPolicy, Run, worker


class KeyedParams(BaseModel):
    """The directory of the file of notes, the key, and how long a run works."""

    directory: str
    region: str = "eu"
    seconds: float = 0.05


def _work(params: KeyedParams, run: Run) -> None:
    with (Path(params.directory) / "notes.txt").open("ab", buffering=0) as file:
        for word in ("begin", "end"):
            file.write(
                f"{word} {params.region} {run.execution_id} {run.attempt} {os.getpid()} {time.time()}\n".encode()
            )
            if word == "begin":
                time.sleep(params.seconds)


@worker(
    "tests.one_of_each_key", params=KeyedParams, limit=Limit(at_once=1, key="region"), retry=RetryPolicy(delay_ms=1000)
)
def one_of_each_key(params: KeyedParams, run: Run) -> None:
    """Runs once at a time for each region."""
    _work(params, run)


@worker("tests.two_at_once", params=KeyedParams, limit=Limit(at_once=2))
def two_at_once(params: KeyedParams, run: Run) -> None:
    """Runs at most twice at a time."""
    _work(params, run)


@worker("tests.three_in_two_seconds", params=KeyedParams, limit=Limit(starts=3, per=2))
def three_in_two_seconds(params: KeyedParams, run: Run) -> None:
    """Starts at most three times within two seconds."""
    _work(params, run)


class RegionParams(BaseModel):
    """The key alone."""

    region: str = "eu"


@worker("tests.noop_of_each_key", params=RegionParams, limit=Limit(at_once=1, key="region"))
def noop_of_each_key(params: RegionParams, run: Run) -> None:
    """Does nothing, once at a time for each region."""


@worker("tests.noop_with_region", params=RegionParams)
def noop_with_region(params: RegionParams, run: Run) -> None:
    """Does nothing, without a limit."""
