"""The backend that a project names in its setting TASKS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.utils import timezone as clock

from scheduling.core.retry import RetryPolicy
from scheduling.tasks.framework import framework
from scheduling.tasks.options import BACKEND_OPTIONS, handler_options
from scheduling.tasks.queues import names_problem

NAME_LENGTH = 100
"""The greatest length of a worker's name, and so of the import path of a task."""

found = framework()
Base: Any = found.BaseTaskBackend


class CronBackend(Base):  # type: ignore[misc]  # its type is Any, because two packages can have it
    """Enqueues a task as an execution, in the caller's transaction. Consumers (`run_worker`) run it.

    Raises:
        InvalidTaskBackend: QUEUES names a queue that cannot exist, or OPTIONS has a wrong value.
    """

    alias: str
    queues: set[str]
    options: Mapping[str, Any]

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: Mapping[str, Any]) -> None:
        super().__init__(alias, params)
        if problem := names_problem(self.queues):
            raise found.InvalidTaskBackend(f"QUEUES of TASKS[{alias!r}]: {problem}")
        self.queues = self.queues or {found.DEFAULT_QUEUE}  # an empty list would allow any name
        unknown = sorted(set(self.options) - set(BACKEND_OPTIONS))
        if unknown:
            known = ", ".join(BACKEND_OPTIONS)
            raise found.InvalidTaskBackend(f"OPTIONS of TASKS[{alias!r}] has {unknown}. The options are {known}.")
        try:
            handler_options(self.options, RetryPolicy())
        except ValueError as error:
            raise found.InvalidTaskBackend(f"OPTIONS of TASKS[{alias!r}]: {error}") from None

    def validate_task(self, task: Any) -> None:
        """Refuse a task that cannot run here. Django calls it for each new `Task`.

        Raises:
            InvalidTask: Django refuses the task, or its import path is too long for the name of a worker.
        """
        super().validate_task(task)
        if len(task.module_path) > NAME_LENGTH:
            said = f"The import path {task.module_path} has {len(task.module_path)} characters"
            raise found.InvalidTask(f"{said}; a task has {NAME_LENGTH} at most.")

    def enqueue(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Insert an execution, in the caller's transaction. It is published after the commit.

        Returns:
            A TaskResult in the state READY.

        Raises:
            InvalidTask: the task is not in a module `tasks` of an installed app.
            TypeError: the arguments are not JSON, or the function cannot be called with them.
            ValueError: a database cannot store the arguments.
            Held: the database was copied or restored, and no person has confirmed it yet.
        """
        from scheduling.tasks.enqueue import enqueue

        self.validate_task(task)
        result = enqueue(task, args, kwargs, clock.now())
        found.task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: Any) -> Any:
        """The TaskResult of an execution, as its rows are now.

        Raises:
            TaskResultDoesNotExist: no execution has this id, or it ran no known task of this backend.
        """
        from scheduling.tasks.results import find_result

        return find_result(str(result_id), self.alias)
