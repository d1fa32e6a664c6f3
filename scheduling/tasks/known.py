"""The tasks that may run: those that Django's start has found in the modules `tasks` of installed apps.

A row or a message can name only these. Nothing is imported by a name from outside.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

_known: dict[str, Any] = {}


def keep_task(task: Any) -> None:
    """Make a task known under its import path."""
    _known[task.module_path] = replace(task, run_after=None)


def find_task(name: str) -> Any:
    """The known task with this import path; None if there is none."""
    return _known.get(name)
