"""The oldest failure of the inbox, the same wherever it is named."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Min
from django.db.models.functions import Coalesce

from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution

FIRST = 1_000
"""Failures that are looked at: those claimed first, for no index knows when a row failed."""


def oldest_failure() -> datetime | None:
    """When it failed; None for an empty inbox. Of more than `FIRST` failures another one may be older still."""
    first = SchedulerExecution.objects.filter(state=State.FAILED.value).order_by("pk")[:FIRST]
    found: datetime | None = first.aggregate(oldest=Min(Coalesce("finished_at", "executed_at")))["oldest"]
    return found
