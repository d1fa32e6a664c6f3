"""Running: what goes on now, how long it has, and how long it usually takes."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.translation import gettext as _

from scheduling.admin import svg
from scheduling.admin.dashboard.figures import count
from scheduling.admin.dashboard.history import last_runs, p95
from scheduling.admin.dashboard.viewer import Viewer
from scheduling.admin.parts import EMPTY, length, shown
from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution
from scheduling.models.scheduler import TARGETS

MOST = 50


def running(viewer: Viewer) -> dict[str, Any]:
    """The longest-running first, for those may need somebody."""
    rows = SchedulerExecution.objects.filter(state=State.RUNNING.value)
    related = ("scheduler", *(f"scheduler__{target}" for target in TARGETS))
    narrow = rows.order_by("pk").defer("params", "error_message", "reason").prefetch_related(*related)
    found = list(narrow[: MOST + 1])
    usual = {pk: p95(runs) for pk, runs in last_runs({row.scheduler_id for row in found if row.scheduler_id}).items()}
    lines = [_line(row, usual.get(row.scheduler_id or 0), viewer) for row in found[:MOST]]
    lines.sort(key=lambda line: -line["seconds"])
    return {
        "lines": lines,
        "more": count(rows) if len(found) > MOST else "",
        "all": viewer.list_of("schedulerexecution", state=State.RUNNING.value),
        "may_cancel": viewer.may_cancel,
    }


def _line(row: SchedulerExecution, usual: float | None, viewer: Viewer) -> dict[str, Any]:
    seconds = max(0.0, (viewer.now - row.started_at).total_seconds()) if row.started_at else 0.0
    late = usual is not None and seconds > usual
    meter: object = ""
    if usual:
        words = _("%(elapsed)s of usually at most %(usual)s") % {"elapsed": length(seconds), "usual": length(usual)}
        meter = svg.meter(seconds / usual, words, "dash-late" if late else "")
    cancel = ""
    if viewer.may_cancel and not row.cancel_requested_by:
        cancel = reverse("admin:scheduling_schedulerexecution_cancel", args=[row.pk])
    return {
        "pk": row.pk,
        "seconds": seconds,
        "target": shown(row.target_name or row.type, 80),
        "schedule": shown(row.scheduler, 80) if row.scheduler is not None else "",
        "address": viewer.execution(row.pk),
        "attempt": row.attempt,
        "consumer": shown(row.consumer, 60) or EMPTY,
        "elapsed": length(seconds),
        "usual": length(usual) if usual is not None else "",
        "late": late,
        "meter": meter,
        "progress": shown(row.progress, 64),
        "cancel": cancel,
        "cancelling": bool(row.cancel_requested_by),
    }
