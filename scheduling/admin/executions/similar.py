"""Counts the executions that failed with the same error in the last 24 hours, and links to their list."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import ClassVar

from django.http import HttpRequest
from django.utils.translation import ngettext

from scheduling.admin.ui.links import list_url
from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution
from scheduling.models.newest import newest_values
from scheduling.models.visibility import visibility_of

WITHIN = timedelta(hours=24)


@dataclass(frozen=True)
class Similar:
    """`text` says how many other executions failed with the same error. `address` is the URL of their list."""

    count: int
    text: str
    address: str

    failures_compared: ClassVar[int] = 2_000
    """At most this many of the newest failures are compared. The limit keeps the query fast on a large table."""


def similar(request: HttpRequest, row: SchedulerExecution, now: datetime) -> Similar | None:
    """Count the other executions of the row's error group that failed in the last 24 hours and are still in the inbox.

    The result is None if the row belongs to no error group.
    """
    if not row.fingerprint:
        return None
    rows, columns = SchedulerExecution.objects.filter(state=State.FAILED.value), ("pk", "fingerprint", "finished_at")
    found = newest_values(rows, visibility_of(request.user), columns, Similar.failures_compared)
    count = sum(
        1
        for pk, group, finished in found
        if group == row.fingerprint and pk != row.pk and finished is not None and finished >= now - WITHIN
    )
    said = f"{count}+" if len(found) == Similar.failures_compared and count else str(count)
    text = ngettext("%(count)s similar in the last 24 h", "%(count)s similar in the last 24 h", count) % {"count": said}
    return Similar(count, text, _address(request, row))


def _address(request: HttpRequest, row: SchedulerExecution) -> str:
    if request.user.has_perm("scheduling.view_failedexecution"):
        return list_url("failedexecution", fingerprint=row.fingerprint)
    return list_url("schedulerexecution", q=row.fingerprint, within="24h")
