"""Delays: the waits of which retries will have need, so that the broker is ready for them."""

from __future__ import annotations

from contextlib import suppress

from django.db import DatabaseError
from django.db.models import Q

from scheduling.conf import get_conf
from scheduling.core.retry import RetryPolicyInvalid, delays
from scheduling.logs import get_logger
from scheduling.models import Scheduler
from scheduling.registry import UnknownHandler, find, handlers
from scheduling.targets import NAME_FIELD

log = get_logger(__name__)

OWN = ("max_retries", "retry_delay_ms", "retry_multiplier", "retry_max_delay_ms", "retry_jitter")
"""The columns of a schedule's own policy; a row without any of them inherits."""

MOST_ROWS = 10_000


def known_delays() -> set[int]:
    """Un-jittered delays in milliseconds of the settings, the handlers and the saved schedules.

    A schedule that is saved later is met by the consumer that starts its run. While the database is
    away, so are the schedules' delays.
    """
    found = set(delays(get_conf().retry))
    for handler in handlers():
        if handler.retry is not None:
            found.update(delays(handler.retry))
    try:
        found |= _of_schedules()
    except DatabaseError as error:
        log.debug("The schedules' own delays cannot be read now: %s", error)
    return found


def _of_schedules() -> set[int]:
    found: set[int] = set()
    names = {type_: f"{type_}__{column}" for type_, column in NAME_FIELD.items()}
    own = Q()
    for column in OWN:
        own |= Q(**{f"{column}__isnull": False})
    rows = Scheduler.objects.filter(own).order_by().values(*OWN, *names.values()).distinct()[:MOST_ROWS]
    for row in rows:
        base = get_conf().retry
        for type_, name in names.items():
            if row[name]:
                with suppress(UnknownHandler):
                    base = find(type_, row[name]).retry or base
        with suppress(RetryPolicyInvalid):  # plain SQL wrote it; runs inherit, and those delays are known
            found.update(delays(Scheduler(**{column: row[column] for column in OWN}).retry_policy(base)))
    return found
