"""How many failed lately with the same error, and the way to them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import ngettext

from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution

WITHIN = timedelta(hours=24)

LOOKED_AT = 2_000
"""Failures that are compared, the latest ones: a head of the index on the state, whatever the table's size."""


@dataclass(frozen=True)
class Alike:
    """`text` says how many others, `address` leads to all of the group; empty for who may not see them."""

    count: int
    text: str
    address: str


def alike(request: HttpRequest, row: SchedulerExecution, now: datetime) -> Alike | None:
    """Others that wait in the inbox for the same cause since a day; None where the row has no error group."""
    if not row.fingerprint:
        return None
    rows = SchedulerExecution.objects.filter(state=State.FAILED.value).order_by("-id")
    found = list(rows.values_list("pk", "fingerprint", "finished_at")[:LOOKED_AT])
    count = sum(
        1
        for pk, group, finished in found
        if group == row.fingerprint and pk != row.pk and finished is not None and finished >= now - WITHIN
    )
    said = f"{count}+" if len(found) == LOOKED_AT and count else str(count)
    text = ngettext("%(count)s other alike in 24 h", "%(count)s others alike in 24 h", count) % {"count": said}
    return Alike(count, text, _address(request, row))


def _address(request: HttpRequest, row: SchedulerExecution) -> str:
    if request.user.has_perm("scheduling.view_failedexecution"):
        query = urlencode({"fingerprint": row.fingerprint})
        return f"{reverse('admin:scheduling_failedexecution_changelist')}?{query}"
    query = urlencode({"q": row.fingerprint, "within": "24h"})
    return f"{reverse('admin:scheduling_schedulerexecution_changelist')}?{query}"
