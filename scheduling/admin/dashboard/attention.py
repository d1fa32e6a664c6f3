"""The part "Needs attention": the present findings, with advice and links."""

from __future__ import annotations

from typing import Any

from scheduling.admin.common.viewer import Viewer
from scheduling.admin.ui.badges import icon
from scheduling.core.lifecycle import State
from scheduling.monitoring.findings.areas import problems
from scheduling.monitoring.findings.finding import Finding, Level
from scheduling.processes.set_aside import ERROR_CLASS

ICONS = {"queued": "clock", "claimed": "clock", "failing": "cross"}
"""Maps a check to the icon of its findings. The findings of all other checks get the warning sign."""

LISTS: dict[str, tuple[str, dict[str, str]]] = {
    "producers": ("process", {}),
    "consumers": ("process", {}),
    "standalone": ("process", {}),
    "silent": ("process", {"presence": "silent"}),
    "queued": ("schedulerexecution", {"state": State.QUEUED.value}),
    "claimed": ("schedulerexecution", {"state": State.CLAIMED.value}),
    "leases": ("schedulerexecution", {"state": State.RUNNING.value}),
    "refused execution": ("schedulerexecution", {}),
    "unusable": ("failedexecution", {"error_class": ERROR_CLASS}),
}
"""Maps a check to the model and filters of a list. The findings of the check link to this list.

The findings of all other checks link to the list of schedules.
"""

TONES = {Level.WARN: "warn", Level.FAIL: "bad"}


def attention(viewer: Viewer) -> dict[str, Any]:
    """All present findings, the most serious first."""
    return {"problems": [_shown(finding, viewer) for finding in problems(viewer.now)]}


def _shown(finding: Finding, viewer: Viewer) -> dict[str, Any]:
    """The template's values for one finding. Schedules and executions link to their pages, other rows to a list."""
    model, filters = LISTS.get(finding.check, ("scheduler", {}))
    address = viewer.list_of(model, **filters)
    page = viewer.scheduler if model == "scheduler" else viewer.execution
    rows = [((page(row.pk) if row.pk else "") or address, row.name, row.about) for row in finding.rows]
    mark = icon(ICONS.get(finding.check, "warn"))
    return {"finding": finding, "tone": TONES[finding.level], "mark": mark, "rows": rows, "address": address}
