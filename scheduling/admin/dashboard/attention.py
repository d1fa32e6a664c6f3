"""The part "Needs attention": the present findings, with advice and links."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from scheduling.admin.common.next_page import NEXT
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.ui.badges import icon
from scheduling.admin.ui.links import admin_url, list_url
from scheduling.core.lifecycle import State
from scheduling.handlers.permission import refused_executions
from scheduling.models import SchedulerExecution
from scheduling.monitoring.findings.areas import problems
from scheduling.monitoring.findings.finding import Finding, Level, Named
from scheduling.processes.set_aside import ERROR_CLASS

ICONS = {
    "queued": "clock",
    "claimed": "clock",
    "failing": "cross",
    "inbox": "cross",
    "paused": "pause",
    "paused by failures": "pause",
    "pauses": "pause",
    "breakers": "pause",
    "closed breakers": "check",
    "skipped": "skip",
    "slow": "clock",
    "alerts": "cross",
    "alert messages": "cross",
}
"""Maps a check to the icon of its findings. The findings of all other checks get the warning sign."""

LISTS: dict[str, tuple[str, dict[str, str]]] = {
    "producers": ("process", {}),
    "consumers": ("process", {}),
    "standalone": ("process", {}),
    "silent": ("process", {"presence": "silent"}),
    "old code": ("process", {}),
    "left out handlers": ("process", {}),
    "pauses": ("pause", {}),
    "breakers": ("breaker", {}),
    "calendars": ("calendar", {}),
    "closed breakers": ("breaker", {}),
    "alerts": ("alert", {"state": "new"}),
    "alert messages": ("alert", {"state": "all"}),
    "alert watch": ("process", {}),
    "heartbeat": ("process", {}),
    "mail": ("channel", {}),
    "queued": ("schedulerexecution", {"state": State.QUEUED.value}),
    "claimed": ("schedulerexecution", {"state": State.CLAIMED.value}),
    "leases": ("schedulerexecution", {"state": State.RUNNING.value}),
    "refused execution": ("schedulerexecution", {}),
    "late pings": ("schedulerexecution", {}),
    "dropped pings": ("schedulerexecution", {}),
    "unusable": ("failedexecution", {"error_class": ERROR_CLASS}),
    "inbox": ("failedexecution", {}),
    "slow": ("schedulerexecution", {"state": State.RUNNING.value}),
    "services": ("schedulerexecution", {"state": State.RETRYING.value}),
}
"""Maps a check to the model and filters of a list. The findings of the check link to this list.

The findings of all other checks link to the list of schedules.
"""

TONES = {Level.WARN: "warn", Level.FAIL: "bad"}


def attention(viewer: Viewer) -> dict[str, Any]:
    """All present findings, the most serious first."""
    return {"problems": [_shown(finding, viewer) for finding in problems(viewer.present)]}


def _shown(finding: Finding, viewer: Viewer) -> dict[str, Any]:
    """The template's values for one finding. Schedules and executions link to their pages, other rows to a list."""
    model, filters = LISTS.get(finding.check, ("scheduler", {}))
    address = viewer.list_of(model, **filters)
    refused = _refused(finding, viewer) if finding.check == "inbox" else set()
    rows = [_row(row, model, address, viewer, refused) for row in finding.rows]
    if finding.check == "inbox" and not address:
        rows = []  # the names are errors, and this user may not see the inbox
    mark = icon(ICONS.get(finding.check, "warn"))
    return {"finding": finding, "tone": TONES[finding.level], "mark": mark, "rows": rows, "address": address}


def _refused(finding: Finding, viewer: Viewer) -> set[int]:
    """The failures of the finding whose code asks for a permission that the user lacks."""
    condition = refused_executions(viewer.user)
    if condition is None:
        return set()
    rows = SchedulerExecution.objects.filter(condition, pk__in=[row.pk for row in finding.rows if row.pk])
    return set(rows.values_list("pk", flat=True))


def _row(row: Named, model: str, address: str, viewer: Viewer, refused: set[int]) -> dict[str, Any]:
    """The template's values for a named row. A cause in the inbox has the address of its button "Republish", too.

    Args:
        refused: the failures that the user may not republish.
    """
    if model != "failedexecution" or not row.key:
        pages = {"scheduler": viewer.scheduler, "alert": viewer.alert, "calendar": viewer.calendar}
        page = pages.get(model, viewer.execution)
        return {"address": (page(row.pk) if row.pk else "") or address, "row": row}
    found: dict[str, Any] = {"address": viewer.list_of(model, fingerprint=row.key), "row": row}
    if viewer.may_republish and row.pk and row.pk not in refused:
        # One failure has a page of its own, which leads back to the dashboard. Several are republished by the list.
        single = admin_url("scheduling_failedexecution_republish", row.pk)
        found["republish"] = f"{single}?{urlencode({NEXT: list_url('dashboard')})}" if row.count == 1 else ""
        found["republish_all"] = list_url(model, fingerprint=row.key) if row.count > 1 else ""
    return found
