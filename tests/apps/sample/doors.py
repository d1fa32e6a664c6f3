"""A handler that writes through one of the ways on which the work of a run gets stored: through one door."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from pydantic import BaseModel

from scheduling.handlers import RetryPolicy, Run, worker
from tests.apps.sample.surviving import effect, note

Wait = Callable[[], None]


class DoorParams(BaseModel):
    """The directory of the files, the name of the door, and whether the attempt waits inside the door."""

    directory: str
    door: str
    inside: bool = False
    prefix: str = ""


class SlowFile(io.BytesIO):
    """A file that waits when it is read for the storage."""

    def __init__(self, data: bytes, wait: Wait) -> None:
        super().__init__(data)
        self._wait = wait

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the data. A check of the file reads no bytes, and does not wait."""
        if size:
            self._wait()
        return super().read(size)


@worker("tests.door", params=DoorParams, retry=RetryPolicy(max_retries=3, delay_ms=1000, multiplier=1.0))
def door(params: DoorParams, run: Run) -> list[Any]:
    """Each attempt waits at its door for the file `go.<attempt>`. Its result is the door and the attempt."""

    def wait() -> None:
        note(params, run, "held")
        while not (Path(params.directory) / f"go.{run.attempt}").exists():
            time.sleep(0.1)

    note(params, run, "start")
    if not params.inside:
        wait()
    try:
        _through(params, run, wait if params.inside else lambda: None)
    except BaseException as error:
        note(params, run, f"over {type(error).__name__}")
        raise
    note(params, run, "over done")
    return [params.door, run.attempt]


def _through(params: DoorParams, run: Run, wait: Wait) -> None:
    match params.door:
        case "attach":
            run.attach(SlowFile(str(run.attempt).encode(), wait), "words.txt")
        case "progress":
            run.progress(run.attempt, 2)
        case "output":
            print(f"words of {run.attempt}")  # noqa: T201
        case "step outside":
            run.step("mark", _outside, params, run, wait, atomic=False)
        case "checkpoint":
            run.checkpoint(run.attempt)
        case _:
            _through_transaction(params, run, wait)


def _outside(params: DoorParams, run: Run, wait: Wait) -> None:
    note(params, run, "effect")
    wait()


def _through_transaction(params: DoorParams, run: Run, wait: Wait) -> None:
    def work(*_row: User) -> None:
        effect(run, params.door.split()[0])
        wait()

    match params.door:
        case "step":
            run.step("mark", work)
        case "each":
            run.each(User.objects.filter(username=params.prefix), work, name="mark")
        case "atomic":
            with run.atomic():
                work()
                run.checkpoint(run.attempt)
        case "atomic without checkpoint":
            with run.atomic():
                work()
