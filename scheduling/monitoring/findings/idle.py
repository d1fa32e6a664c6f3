"""Finds consumers that are idle although runs of their queue wait."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from scheduling.conf import get_conf
from scheduling.models import Process, RefusedRow
from scheduling.models.process import CHOSEN
from scheduling.monitoring.findings import watched

IDLE_LONG = timedelta(minutes=1)
"""How long a run waits beside an idle consumer before this is a finding. A lost message is published again sooner."""


def idle_consumers(queue: str, processes: Iterable[Process], now: datetime) -> list[Process]:
    """The consumers of the work queue that could have started a run for `IDLE_LONG` and have started none.

    A consumer that runs only some handlers is left out: the runs that wait may be of other ones.

    Args:
        processes: alive processes.
    """
    limit = get_conf().clock_limit_seconds
    serving = [
        process
        for process in processes
        if process.queue and process.serves(queue) and abs(process.clock_ahead) < limit and CHOSEN not in process.info
    ]
    return [process for process in serving if (since := process.idle_since) is not None and since < now - IDLE_LONG]


def waiting_since(queue: str, now: datetime) -> datetime | None:
    """Since when the oldest run of the queue waits; None if no run has waited for `IDLE_LONG`.

    Rows that the database refuses to change have a finding of their own, and no consumer can start them.
    """
    refused = RefusedRow.objects.filter(kind=RefusedRow.Kind.EXECUTION).values("row_id")
    rows = watched.waiting(queue)(now - IDLE_LONG).exclude(pk__in=refused)
    return rows.values_list("wake_at", flat=True).first()
