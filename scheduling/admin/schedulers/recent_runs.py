"""The recent runs on a schedule's page. Bars show how long these runs took, and a table lists the newest runs."""

from __future__ import annotations

from typing import Any

from django.utils.html import format_html
from django.utils.translation import gettext as _

from scheduling.admin.common.viewer import Viewer
from scheduling.admin.executions.duration import slow_mark
from scheduling.admin.stats.run_bars import bars
from scheduling.admin.stats.runs import durations, percentile, success_rate, usual
from scheduling.admin.ui.badges import state_badge
from scheduling.admin.ui.durations import slow_words, took_words
from scheduling.admin.ui.links import list_url
from scheduling.admin.ui.schedules import zone_of
from scheduling.admin.ui.times import EMPTY, format_duration, time_with_relative
from scheduling.core.durations import Usual, p95
from scheduling.models import Artefact, Scheduler
from scheduling.models.last_runs import Ran, last_runs

LISTED = 10


def recent_runs(row: Scheduler, viewer: Viewer) -> dict[str, Any]:
    """Returns the values for the template, or an empty dict if the user may not view executions."""
    if not viewer.sees("schedulerexecution"):
        return {}
    runs = last_runs([row.pk], viewer.visible)[row.pk]
    took, rate, known = durations(runs), success_rate(runs), usual(runs)
    files = Artefact.objects.of(run.pk for run in runs[-LISTED:]).per_execution()
    info = zone_of(row)
    return {
        "count": len(runs),
        "bars": bars(runs, viewer, info) if runs else "",
        "figures": [
            (
                _("Succeeded, of those that ran"),
                EMPTY if rate is None else _("%(share)d %%") % {"share": int(rate * 100)},
            ),
            (_("Median"), format_duration(percentile(took, 0.5) or 0) if took else EMPTY),
            *([] if (high := p95(took)) is None else [(_("p95"), format_duration(high))]),
        ],
        "lines": [
            {
                "address": viewer.execution(run.pk),
                "chip": state_badge(run.state),
                "at": time_with_relative(run.scheduled_at, viewer.now, info),
                "output": f"{address}#output" if (address := viewer.execution(run.pk)) else "",
                "files": files.get(run.pk, 0),
                "took": _took(run, known),
            }
            for run in reversed(runs[-LISTED:])
        ],
        "all": list_url("schedulerexecution", scheduler=row.pk),
    }


def _took(run: Ran, known: Usual | None) -> str:
    """How long the run took, with a mark if this was slower than usual."""
    words = took_words(run.state, run.started_at, run.ended_at, run.finished_at)
    return format_html("{} {}", slow_mark(said), words) if (said := slow_words(run.seconds, known)) else words
