"""Finds the tasks in the modules `tasks` of installed apps, and registers each as a worker."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import wraps
from types import ModuleType
from typing import Any

from django.apps import apps
from django.conf import settings
from django.utils.module_loading import autodiscover_modules, import_string

from scheduling import conf
from scheduling.core.retry import RetryPolicy
from scheduling.handlers.registry import Handler, register
from scheduling.handlers.run import Run
from scheduling.tasks.attempt import TaskAttempt
from scheduling.tasks.framework import FRAMEWORK, framework
from scheduling.tasks.known import find_task, keep_task
from scheduling.tasks.options import handler_options, options_of
from scheduling.tasks.params import TaskParams, params_model
from scheduling.tasks.queues import priority_for, queue_for

MODULE = "tasks"
"""The module of an app in which tasks are found."""


def discover_tasks() -> None:
    """Import the modules `tasks` of the installed apps, and register their tasks that use this backend.

    If no backend of TASKS is a CronBackend, nothing is imported: modules with this name may belong to Celery.

    Raises:
        ImproperlyConfigured: the backend of a task cannot be used.
        RegistryError: a task cannot be registered.
    """
    if FRAMEWORK is None or not _is_configured():
        return
    autodiscover_modules(MODULE)
    for config in apps.get_app_configs():
        module = sys.modules.get(f"{config.name}.{MODULE}")
        for task in _own_tasks(module) if module is not None else ():
            know(task)


def _is_configured() -> bool:
    from scheduling.tasks.backend import CronBackend

    for backend in (getattr(settings, "TASKS", None) or {}).values():
        with suppress(ImportError, KeyError, TypeError):  # Django's own check reports a backend that it cannot import
            if issubclass(import_string(backend["BACKEND"]), CronBackend):
                return True
    return False


def _own_tasks(module: ModuleType) -> Iterator[Any]:
    from scheduling.tasks.backend import CronBackend

    for value in list(vars(module).values()):
        if isinstance(value, framework().Task) and isinstance(value.get_backend(), CronBackend):
            yield value


def know(task: Any) -> None:
    """Register a task as a worker, with its options and those of its backend.

    Raises:
        RegistryError: other code is registered under this name.
        ValueError: an option is out of bounds.
    """
    if find_task(task.module_path) is not None:  # another module has imported it, or has made a variant with `using`
        return
    usual = RetryPolicy() if conf.problems() else conf.get_conf().retry
    options = handler_options({**task.get_backend().options, **options_of(task.func)}, usual)
    options["description"] = options.get("description") or inspect.getdoc(task.func) or ""
    options |= {"queue": queue_for(task.queue_name), "priority": priority_for(task.priority).value}
    model, attempt = params_model(task.func, task.takes_context), TaskAttempt(task)

    @wraps(task.func)
    def call(params: TaskParams, run: Run) -> Any:
        return attempt.call(params, run)

    register(Handler("worker", task.module_path, call, model, at_end=attempt.end, **options))
    keep_task(task)
