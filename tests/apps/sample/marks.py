"""A file for each execution, in which its attempts leave marks."""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, Field

from scheduling.handlers import Run


class MarkParams(BaseModel):
    """The directory of the files that `mark` writes, and the length of a run in seconds."""

    directory: str = ""
    seconds: float = Field(0, ge=0, le=600)


def mark(params: MarkParams, run: Run, word: str = "start") -> None:
    """Append a line to a file. The file shows which attempts really ran, independently of the database rows."""
    if params.directory:
        path = Path(params.directory) / f"{run.execution_id}.txt"
        with path.open("a") as file:
            file.write(f"{word} {run.attempt} {os.getpid()}\n")
