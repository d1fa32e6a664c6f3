"""Recent runs of one schedule, for its own page: bars of their durations, and the newest as a table."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from django.urls import reverse
from django.utils.translation import gettext as _

from scheduling.admin.chips import state_chip
from scheduling.admin.dashboard.figures import percentile
from scheduling.admin.dashboard.history import durations, last_runs, success_rate
from scheduling.admin.dashboard.schedules import bars
from scheduling.admin.dashboard.viewer import Viewer
from scheduling.admin.times import EMPTY, length, when
from scheduling.core.cron import ZoneError, zone
from scheduling.models import Scheduler

LISTED = 10


def recent_runs(row: Scheduler, viewer: Viewer) -> dict[str, Any]:
    """What the template shows; nothing for who may not see executions."""
    if not viewer.sees("schedulerexecution"):
        return {}
    runs = last_runs([row.pk])[row.pk]
    took, rate = durations(runs), success_rate(runs)
    try:
        info = zone(row.zone_name)
    except ZoneError:
        info = ZoneInfo("UTC")
    return {
        "count": len(runs),
        "bars": bars(runs, viewer) if runs else "",
        "figures": [
            (_("Succeeded"), EMPTY if rate is None else _("%(share)d %%") % {"share": int(rate * 100)}),
            (_("Half take at most"), length(percentile(took, 0.5) or 0) if took else EMPTY),
            (_("95 of 100 take at most"), length(percentile(took, 0.95) or 0) if took else EMPTY),
        ],
        "lines": [
            {
                "address": viewer.execution(run.pk),
                "chip": state_chip(run.state),
                "at": when(run.scheduled_at, viewer.now, info),
                "took": EMPTY if run.seconds is None else length(run.seconds),
            }
            for run in reversed(runs[-LISTED:])
        ],
        "all": f"{reverse('admin:scheduling_schedulerexecution_changelist')}?scheduler={row.pk}",
    }
