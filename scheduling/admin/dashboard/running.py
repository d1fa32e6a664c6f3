"""The part "Running": the running executions, how long they have run, and how long they usually take."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from scheduling.admin.common.viewer import Viewer
from scheduling.admin.stats.runs import usual
from scheduling.admin.ui import svg
from scheduling.admin.ui.links import admin_url
from scheduling.admin.ui.targets import loaded_target, target_title
from scheduling.admin.ui.times import EMPTY, format_duration
from scheduling.core.durations import Usual
from scheduling.core.lifecycle import State
from scheduling.core.outcome import PROGRESS_LENGTH
from scheduling.core.text import visible_text
from scheduling.handlers.permission import lacked
from scheduling.models import SchedulerExecution
from scheduling.models.last_runs import last_runs
from scheduling.monitoring.findings import watched

SHOWN_RUNS = 50


def running(viewer: Viewer) -> dict[str, Any]:
    """The template context: the running executions. Those that have run longest come first."""
    rows = viewer.visible.executions().filter(state=State.RUNNING.value)
    narrow = viewer.visible.with_schedules(rows.order_by("pk").defer("params", "error_message", "reason"))
    found = list(narrow[: SHOWN_RUNS + 1]) if viewer.present.count(watched.running) else []
    runs_of = last_runs({row.scheduler_id for row in found if row.scheduler_id}, viewer.visible)
    known = {pk: usual(runs) for pk, runs in runs_of.items()}
    lines = [_line(row, known.get(row.scheduler_id or 0), viewer) for row in found[:SHOWN_RUNS]]
    lines.sort(key=lambda line: -line["seconds"])
    return {
        "lines": lines,
        "more": viewer.present.count(watched.running) if len(found) > SHOWN_RUNS else "",
        "all": viewer.list_of("schedulerexecution", state=State.RUNNING.value),
        "may_cancel": viewer.may_cancel,
    }


def _line(row: SchedulerExecution, known: Usual | None, viewer: Viewer) -> dict[str, Any]:
    seconds = max(0.0, (viewer.now - row.started_at).total_seconds()) if row.started_at else 0.0
    may_cancel = viewer.may_cancel and lacked(viewer.user, row) is None
    late = known is not None and seconds > known.limit
    times = {"elapsed": format_duration(seconds), "usual": format_duration(known.median) if known is not None else ""}
    words = _("%(elapsed)s, usually %(usual)s") % times
    return {
        **times,
        "pk": row.pk,
        "seconds": seconds,
        "target": target_title(row.type, row.target_name, loaded_target(row)),
        "raw_name": visible_text(row.target_name, 200),
        "schedule": visible_text(row.scheduler, 80) if row.scheduler is not None else "",
        "address": viewer.execution(row.pk),
        "attempt": row.attempt,
        "consumer": visible_text(row.consumer, 60) or EMPTY,
        "late": late,
        "meter": svg.meter(seconds / known.limit, words, "dash-late" if late else "") if known and known.limit else "",
        "progress": visible_text(row.progress, PROGRESS_LENGTH),
        "cancel": admin_url("scheduling_schedulerexecution_cancel", row.pk) if may_cancel else "",
        "cancelling": bool(row.cancel_requested_by),
    }
