"""Finds the work queue of the runs of a schedule or a target."""

from __future__ import annotations

from scheduling.core.queues import MAIN, STANDALONE, choice_problem, work_queue
from scheduling.core.targets import TARGET_KINDS
from scheduling.handlers.registry import Handler, handlers
from scheduling.handlers.targets import handler_named


class QueueInvalid(ValueError):
    """Plain SQL has written a queue or a priority that does not exist into a schedule."""


def work_queue_of(type_: str, name: str, queue: str = "", priority: str = "", *, service: bool = False) -> str:
    """The work queue of a run.

    Args:
        type_: the type of its target.
        name: the name of its target. A worker or a report has the same name as its handler.
        queue: the queue that the schedule or the caller names; empty: that of the handler.
        priority: the priority that the schedule or the caller names; empty: that of the handler.
        service: whether the schedule is a service.

    Raises:
        QueueInvalid: the queue or the priority cannot be used.
    """
    if service:
        return STANDALONE
    if (queue or priority) and (problem := choice_problem(queue, priority)):
        raise QueueInvalid(problem)
    kind = TARGET_KINDS.get(type_)
    handler = handler_named(type_, kind.handler if kind is not None and kind.handler else name)
    return _chosen(handler, queue, priority)


def _chosen(handler: Handler | None, queue: str, priority: str) -> str:
    if handler is None:
        return work_queue(queue, priority)
    return work_queue(queue or handler.queue, priority or handler.priority)


def queues_in_code() -> dict[str, Handler]:
    """Map each queue that code names, but the main queue, to one of the handlers that name it."""
    return {handler.queue: handler for handler in handlers() if handler.queue not in ("", MAIN)}
