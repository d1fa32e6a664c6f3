"""Collects the retry delays that are known when a process starts. The process declares a wait queue for each delay."""

from __future__ import annotations

from functools import reduce
from operator import or_

from django.db import DatabaseError
from django.db.models import Q

from scheduling.conf import get_conf
from scheduling.core.queues import MAIN, STANDALONE
from scheduling.core.retry import delays
from scheduling.handlers.registry import handlers
from scheduling.handlers.retry_policy import retry_policy
from scheduling.handlers.targets import NAME_FIELD, handler_named
from scheduling.logs import get_logger
from scheduling.models import Scheduler
from scheduling.models.own_retry_policy import RETRY_COLUMNS

log = get_logger(__name__)

POLICY_ROWS_LIMIT = 10_000


def known_delays(queue: str = MAIN) -> set[int]:
    """The delays (milliseconds, without jitter) of the settings, the handlers and the saved schedules.

    Runs of the main queue may have any of these delays, because a message may name any target. Of another queue, only
    the delays of the handlers and schedules that name it count.

    If the database cannot be reached, the delays of the schedules are left out. If a schedule is saved after this
    process has started, the consumer that runs the schedule declares the missing wait queues.
    """
    found = set(delays(get_conf().retry))
    everything = queue in (MAIN, STANDALONE)
    for handler in handlers():
        if handler.retry is not None and (everything or handler.queue == queue):
            found.update(delays(handler.retry))
    try:
        found |= _of_schedules("" if everything else queue)
    except DatabaseError as error:
        log.debug("The schedules' own delays cannot be read now: %s", error)
    return found


def _of_schedules(queue: str) -> set[int]:
    """The delays of the schedules with an own policy; of those that name the queue, if one is given."""
    found: set[int] = set()
    names = {type_: f"{type_}__{column}" for type_, column in NAME_FIELD.items()}
    own = reduce(or_, (Q(**{f"{column}__isnull": False}) for column in RETRY_COLUMNS))
    rows = Scheduler.objects.filter(own).order_by().values(*RETRY_COLUMNS, *names.values(), "queue").distinct()
    for row in rows[:POLICY_ROWS_LIMIT]:
        handler = next((handler_named(type_, row[name]) for type_, name in names.items() if row[name]), None)
        if queue and queue != (row["queue"] or (handler.queue if handler is not None else "")):
            continue
        found.update(delays(retry_policy(handler, Scheduler(**{column: row[column] for column in RETRY_COLUMNS}))))
    return found
