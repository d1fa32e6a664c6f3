"""A module that no autodiscovery imports. It has a task that the module `tasks` imports, and one that it does not."""

from __future__ import annotations

from typing import Any

from scheduling.tasks.framework import framework

task: Any = __import__(framework().root, fromlist=["task"]).task


@task
def imported_task() -> str:
    """Is known, because `tests.apps.sample.tasks` imports it."""
    return "imported"


@task
def lonely_task() -> str:
    """Is not known."""
    return "lonely"
