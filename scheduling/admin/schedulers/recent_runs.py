"""The recent runs on a schedule's page. Bars show how long these runs took, and a table lists the newest runs."""

from __future__ import annotations

from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Count
from django.utils.translation import gettext as _

from scheduling.admin.common.viewer import Viewer
from scheduling.admin.stats.run_bars import bars
from scheduling.admin.stats.runs import durations, percentile, success_rate
from scheduling.admin.ui.badges import state_badge
from scheduling.admin.ui.links import list_url
from scheduling.admin.ui.times import EMPTY, format_duration, time_with_relative
from scheduling.core.cron import ZoneError, zone
from scheduling.models import Artefact, Scheduler
from scheduling.models.last_runs import last_runs

LISTED = 10


def recent_runs(row: Scheduler, viewer: Viewer) -> dict[str, Any]:
    """Returns the values for the template, or an empty dict if the user may not view executions."""
    if not viewer.sees("schedulerexecution"):
        return {}
    runs = last_runs([row.pk])[row.pk]
    took, rate = durations(runs), success_rate(runs)
    files = _files([run.pk for run in runs[-LISTED:]])
    try:
        info = zone(row.zone_name)
    except ZoneError:
        info = ZoneInfo("UTC")
    return {
        "count": len(runs),
        "bars": bars(runs, viewer) if runs else "",
        "figures": [
            (_("Succeeded"), EMPTY if rate is None else _("%(share)d %%") % {"share": int(rate * 100)}),
            (_("Half take at most"), format_duration(percentile(took, 0.5) or 0) if took else EMPTY),
            (_("95 of 100 take at most"), format_duration(percentile(took, 0.95) or 0) if took else EMPTY),
        ],
        "lines": [
            {
                "address": viewer.execution(run.pk),
                "chip": state_badge(run.state),
                "at": time_with_relative(run.scheduled_at, viewer.now, info),
                "output": f"{address}#output" if (address := viewer.execution(run.pk)) else "",
                "files": files.get(run.pk, 0),
                "took": EMPTY if run.seconds is None else format_duration(run.seconds),
            }
            for run in reversed(runs[-LISTED:])
        ],
        "all": list_url("schedulerexecution", scheduler=row.pk),
    }


def _files(keys: list[int]) -> dict[int, int]:
    """How many files each execution has made."""
    rows = Artefact.objects.filter(execution__in=keys).order_by().values_list("execution").annotate(Count("pk"))
    return dict(rows)
