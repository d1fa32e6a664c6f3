"""A project in two versions, for rolling deploys. Each version is an app `parcels` in a folder of its own.

Both versions have a handler that the other one lacks, and a handler whose params the other one refuses. So each deploy,
in either direction, brings a handler, changes one and removes one.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

WORKERS = """
import os, time
from pydantic import BaseModel, ConfigDict
from scheduling.registry import worker

class Plain(BaseModel):
    model_config = ConfigDict(extra="forbid")
    file: str

class Changed(Plain):
    VERSION: int

def mark(params, run):
    # One write of one line: many processes append to the file.
    line = f"{run.execution_id} {run.attempt} VERSION {time.time():.6f}\\n"
    with open(params.file, "ab", buffering=0) as file:
        file.write(line.encode())

worker("parcels.same", params=Plain)(mark)
worker("parcels.changed", params=Changed)(mark)
worker("parcels.VERSION", params=Plain)(mark)
"""

VERSIONS = ("amber", "blue")


class Mark(NamedTuple):
    """A line that a handler has written: one start of one attempt."""

    execution: int
    attempt: int
    version: str
    at: float


class Project:
    """The two versions on disk, and the file of the marks."""

    def __init__(self, directory: Path) -> None:
        self.directory, self.file = directory, directory / "marks.txt"
        self.file.touch()
        for version in VERSIONS:
            app = directory / version / "parcels"
            app.mkdir(parents=True)
            (app / "__init__.py").touch()
            (app / "workers.py").write_text(WORKERS.replace("VERSION", version))

    def environment(self, version: str, root: Path) -> dict[str, str]:
        """The environment of a process that runs this version."""
        return {"EXTRA_APPS": "parcels", "PYTHONPATH": f"{self.directory / version}:{root}"}

    def params(self, version: str, handler: str) -> dict[str, Any]:
        """Params of a handler that this version accepts."""
        own = {version: 1} if handler == "parcels.changed" else {}
        return {"file": str(self.file), **own}

    def marks(self) -> list[Mark]:
        """All marks, in the order in which they were written."""
        lines = [line.split() for line in self.file.read_text().splitlines()]
        return [Mark(int(pk), int(attempt), version, float(at)) for pk, attempt, version, at in lines]
