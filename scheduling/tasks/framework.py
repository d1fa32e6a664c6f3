"""Django's Tasks framework: `django.tasks` from Django 6.0 on, the package `django-tasks` on Django 5.2.

Both have the same classes. Only the names of two errors differ.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any


class Framework:
    """The names of the framework that the backend uses.

    Args:
        root: the package, `django.tasks` or `django_tasks`.
    """

    def __init__(self, root: str) -> None:
        package, base = import_module(root), import_module(f"{root}.base")
        errors, backends = import_module(f"{root}.exceptions"), import_module(f"{root}.backends.base")
        self.root = root
        self.task_backends: Any = package.task_backends
        self.BaseTaskBackend: Any = backends.BaseTaskBackend
        self.Task: Any = base.Task
        self.TaskContext: Any = base.TaskContext
        self.TaskError: Any = base.TaskError
        self.TaskResult: Any = base.TaskResult
        self.Status: Any = base.TaskResultStatus
        self.DEFAULT_QUEUE: str = base.DEFAULT_TASK_QUEUE_NAME
        self.normalize_json: Any = base.normalize_json
        self.InvalidTask: Any = getattr(errors, "InvalidTask", None) or errors.InvalidTaskError
        self.InvalidTaskBackend: Any = getattr(errors, "InvalidTaskBackend", None) or errors.InvalidTaskBackendError
        self.TaskResultDoesNotExist: Any = errors.TaskResultDoesNotExist
        signals = import_module(f"{root}.signals")
        self.task_enqueued: Any = signals.task_enqueued
        self.task_started: Any = signals.task_started
        self.task_finished: Any = signals.task_finished


def _found() -> Framework | None:
    for root in ("django.tasks", "django_tasks"):
        if find_spec(root) is not None:
            return Framework(root)
    return None


FRAMEWORK = _found()
"""None if the framework is not installed."""


def framework() -> Framework:
    """The framework. Call it only where there is one: code of the backend runs nowhere else."""
    assert FRAMEWORK is not None  # noqa: S101 - `CronBackend` does not exist without it
    return FRAMEWORK
