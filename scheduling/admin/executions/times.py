"""The zone in which the page of a run writes its times."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import wraps
from typing import Any

from django.http import HttpRequest

from scheduling.admin.ui.schedules import zone_of
from scheduling.admin.ui.times import times_in
from scheduling.models import SchedulerExecution

Context = Callable[[HttpRequest, SchedulerExecution, datetime], dict[str, Any]]


def times_of_schedule(context: Context) -> Context:
    """Lets a function that makes a template context write all instants in the zone of the row's schedule."""

    @wraps(context)
    def inner(request: HttpRequest, row: SchedulerExecution, now: datetime) -> dict[str, Any]:
        with times_in(zone_of(row.scheduler)):
            return context(request, row, now)

    return inner
