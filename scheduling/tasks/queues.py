"""Maps the queue names and the priorities of Django's tasks to queues and priorities of runs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from scheduling.core.queues import MAIN, Priority, priority_of, queue_of, queue_problem
from scheduling.tasks.framework import framework

NUMBERS = {Priority.HIGH: 1, Priority.NORMAL: 0, Priority.LOW: -1}
"""The number that a TaskResult has if the task's own number stands for another priority."""


def priority_for(number: float) -> Priority:
    """The priority of a task whose `priority` is this number, from -100 to 100."""
    if number > 0:
        return Priority.HIGH
    return Priority.LOW if number < 0 else Priority.NORMAL


def queue_for(name: str) -> str:
    """The queue of a task with this `queue_name`."""
    return MAIN if name == framework().DEFAULT_QUEUE else name


def names_problem(names: Iterable[object]) -> str:
    """Why a backend cannot have these QUEUES: a sentence; empty if it can."""
    others = [name for name in names if name != framework().DEFAULT_QUEUE]
    return next(filter(None, map(queue_problem, others)), "")


def as_enqueued(task: Any, work_queue: str) -> Any:
    """The task with the queue name and the priority of an execution.

    A row does not store Django's number. If the task's own number does not stand for the priority of the execution, the
    number is one of `NUMBERS`.
    """
    priority, queue = priority_of(work_queue), queue_of(work_queue)
    name = framework().DEFAULT_QUEUE if queue == MAIN else queue
    if queue_for(task.queue_name) == queue or name not in task.get_backend().queues:
        name = task.queue_name  # an operator may have chosen a queue that the backend does not name
    number = task.priority if priority_for(task.priority) is priority else NUMBERS[priority]
    return replace(task, queue_name=name, priority=number)
