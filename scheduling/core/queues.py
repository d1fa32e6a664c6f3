"""Names queues and priorities, and the work queues in which runs wait.

A queue has a work queue for each priority. The work queue of the normal priority has the name of the queue, such as
`reports`; the others are `reports.high` and `reports.low`. No name of a queue contains a dot.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum

from scheduling.core.words import gettext as _


class Priority(StrEnum):
    """How early a run gets its turn among the runs that wait in its queue."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


MAIN = "main"
STANDALONE = "standalone"
"""The queue of the services. It has no priorities: each service has a slot of its own."""
IMMEDIATE = "immediate"
"""The queue whose retries never wait: a run that fails is delivered again at once. It has no priorities."""
WITHOUT_PRIORITIES = frozenset({STANDALONE, IMMEDIATE})

NAME_LENGTH = 40
WORK_QUEUE_LENGTH = 50
"""The longest name of a work queue, with room for longer names of priorities."""

LATER = {
    Priority.HIGH: timedelta(0),
    Priority.NORMAL: timedelta(minutes=5),
    Priority.LOW: timedelta(minutes=10),
}
"""Runs start in the order of the instant at which they were due, put off by so much.

So a run overtakes only runs that were due at most ten minutes before it, and each run gets its turn, however many
runs of a higher priority come."""

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*\Z", re.ASCII)
_REFUSED = ("amq", "cron_")
"""Names that begin so belong to RabbitMQ, or look like the names of our own queues in RabbitMQ."""


def queue_problem(name: object) -> str:
    """Why a handler, a schedule or a run cannot name this queue: a sentence; empty if it can."""
    if not isinstance(name, str) or len(name) > NAME_LENGTH or not _NAME.match(name):
        said = _(
            "A queue's name has 1 to {most} lower-case letters, digits and the signs _ and - "
            "and begins with a letter or digit; this is {name}."
        )
        return said.format(most=NAME_LENGTH, name=f"{name!r:.60}")
    if name == STANDALONE:
        return _("The queue {name} belongs to the services: choose another name.").format(name=repr(name))
    if name == "default":
        return _("The queue of runs that name none is called {main}, not 'default'.").format(main=repr(MAIN))
    if name.startswith(_REFUSED):
        said = _("A queue's name does not begin with {first} or {second}; this is {name}.")
        return said.format(first=_REFUSED[0], second=_REFUSED[1], name=f"{name!r:.60}")
    return ""


def priority_problem(name: object) -> str:
    """Why a handler, a schedule or a run cannot have this priority: a sentence; empty if it can."""
    if isinstance(name, str) and name in set(Priority):
        return ""
    said = _("A priority is {priorities}; this is {name}.")
    return said.format(priorities=", ".join(Priority), name=f"{name!r:.60}")


def choice_problem(queue: object, priority: object) -> str:
    """Why the queue or the priority cannot be used: a sentence; empty if both can. An empty text chooses nothing."""
    if queue == IMMEDIATE and priority not in ("", Priority.NORMAL):
        said = _("The queue {name} has no priorities: leave the priority out.")
        return said.format(name=repr(IMMEDIATE))
    return (queue_problem(queue) if queue != "" else "") or (priority_problem(priority) if priority != "" else "")


def work_queue(queue: str = "", priority: str = "") -> str:
    """The work queue of a queue and a priority. Empty texts stand for the main queue and the normal priority."""
    queue = queue or MAIN
    if priority in ("", Priority.NORMAL) or queue in WITHOUT_PRIORITIES:
        return queue
    return f"{queue}.{priority}"


def queue_of(work: str) -> str:
    """The queue to which a work queue belongs. Any text is accepted, because plain SQL can write any."""
    queue, dot, priority = str(work).rpartition(".")
    return queue if dot and priority in set(Priority) else str(work)


def priority_of(work: str) -> Priority:
    """The priority of the runs in a work queue."""
    _queue, dot, priority = str(work).rpartition(".")
    return Priority(priority) if dot and priority in set(Priority) else Priority.NORMAL


def work_queues(queues: Iterable[str]) -> tuple[str, ...]:
    """The work queues of these queues, for each queue the highest priority first."""
    found: list[str] = []
    for queue in queues:
        found += [work_queue(queue, priority) for priority in Priority]
    return tuple(dict.fromkeys(found))


def is_work_queue(text: str) -> bool:
    """Whether the text names a work queue. Plain SQL can write any text into the row of an execution."""
    queue, name = queue_of(text), str(text)
    return name == work_queue(queue, priority_of(text)) and (queue == STANDALONE or not queue_problem(queue))


def later(work: str) -> timedelta:
    """By how much the runs of a work queue are put off, see `LATER`."""
    return LATER[priority_of(work)]


def turn(due: datetime, work: str) -> datetime:
    """The instant of the turn of a run in a work queue. Runs start in the order of their turns."""
    return due + later(work)
