"""The app of the tests' handlers.

With SLOW_PRUNING set, each batch of a clean-up takes so many seconds more. With HEARD set to the name of a file, each
process appends a line to it for each signal of an execution that it gets.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from django.apps import AppConfig
from django.dispatch import Signal

from scheduling.signals import (
    execution_failed,
    execution_skipped,
    execution_started,
    execution_succeeded,
    executions_pruned,
)


class SampleConfig(AppConfig):
    name = "tests.apps.sample"

    def ready(self) -> None:
        """Connect the receivers for which an environment variable asks."""
        if seconds := float(os.environ.get("SLOW_PRUNING", 0)):

            def wait(**_: Any) -> None:
                time.sleep(seconds)

            executions_pruned.connect(wait, weak=False)

        if file := os.environ.get("HEARD", ""):
            note(Path(file), "started", execution_started)
            note(Path(file), "succeeded", execution_succeeded)
            note(Path(file), "skipped", execution_skipped)
            note(Path(file), "failed", execution_failed)


def note(file: Path, word: str, signal: Signal) -> None:
    """Append a line with the word, the id of the execution and the id of this process at each signal."""

    def hear(execution_id: int, **_: Any) -> None:
        with file.open("a") as opened:
            opened.write(f"{word} {execution_id} {os.getpid()}\n")

    signal.connect(hear, weak=False)
