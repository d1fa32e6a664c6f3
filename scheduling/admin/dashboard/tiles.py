"""The tiles of the dashboard, with the most important numbers. Each tile links to the rows that it counts."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _

from scheduling.admin.common.viewer import Viewer
from scheduling.admin.stats.runs import percentile
from scheduling.admin.ui.badges import icon, silence
from scheduling.admin.ui.times import EMPTY, format_duration, relative_time
from scheduling.core.lifecycle import State, Trigger
from scheduling.models import Process, SchedulerExecution
from scheduling.models.newest import newest_values, oldest_failure
from scheduling.monitoring.findings import watched

LAG_COLUMNS = ("scheduled_at", "assigned_at", "started_at", "attempt", "trigger")
LAG_SAMPLE = 1_000
LAG_SPAN = timedelta(hours=1)
MOST_SILENT = 1_000

Silences = list[tuple[str, datetime]]
"""The kind and the last heartbeat of the processes that fell silent, the shortest silence first."""


def tiles(viewer: Viewer) -> dict[str, Any]:
    """The template context: the row of tiles, and a sentence with the counts for screen readers."""
    present = viewer.present
    queued, running, retrying, failed = (
        present.count(rows) for rows in (watched.queued, watched.running, watched.retrying, watched.failed)
    )
    numbers = {"queued": queued, "running": running, "retrying": retrying, "failed": failed}
    inbox = viewer.list_of("failedexecution") or _executions(viewer, State.FAILED)
    failed_look = ("cross", "bad") if failed else ("check", "good")
    failed_note = _oldest_failed(viewer) if failed else _("The inbox is empty.")
    silent: Silences = []
    if present.count(watched.fell_silent):
        silent = list(watched.fell_silent(viewer.now).values_list("kind", "heartbeat_at")[:MOST_SILENT])
    shown = [
        _tile(_("Queued"), queued, "clock", "wait", _executions(viewer, State.QUEUED)),
        _tile(_("Running"), running, "play", "busy", _executions(viewer, State.RUNNING)),
        _tile(_("Retrying"), retrying, "again", "warn" if retrying else "off", _executions(viewer, State.RETRYING)),
        _tile(_("Failed"), failed, *failed_look, inbox, failed_note),
        _processes(viewer, Process.Kind.PRODUCER, _("Producers"), silent),
        _processes(viewer, Process.Kind.CONSUMER, _("Consumers"), silent),
        _lag(viewer),
    ]
    said = _("%(queued)s queued, %(running)s running, %(retrying)s retrying, %(failed)s failed") % numbers
    return {"tiles": shown, "said": said}


def _tile(name: str, value: object, icon_name: str, tone: str, address: str, note: str = "") -> dict[str, Any]:
    """The template's values for one tile. `tone` is the tile's colour. `note` is a line of text below the number."""
    return {"name": name, "value": value, "icon": icon(icon_name), "tone": tone, "address": address, "note": note}


def _executions(viewer: Viewer, state: State) -> str:
    return viewer.list_of("schedulerexecution", state=state.value)


def _oldest_failed(viewer: Viewer) -> str:
    oldest = oldest_failure(viewer.visible)
    return _("The oldest: %(age)s") % {"age": relative_time(oldest, viewer.now)} if oldest else ""


def _processes(viewer: Viewer, kind: Process.Kind, name: str, silent: Silences) -> dict[str, Any]:
    alive = sum(process.kind == kind for process in viewer.present.alive)
    silences = [heartbeat for process_kind, heartbeat in silent if process_kind == kind]
    note = _("%(count)d alive") % {"count": alive} if alive else _("none alive")
    if silences:  # the shortest silence, because it is news; an older one is known
        age = silence(silences[0], viewer.now)
        note += "; " + _("%(count)d more silent for %(time)s") % {"count": len(silences), "time": age}
    filters = {"kind": kind.value, "presence": "silent"} if silences and alive else {"kind": kind.value}
    tone = "bad" if not alive else "warn" if silences else "good"
    return _tile(name, alive, "check" if tone == "good" else "warn", tone, viewer.list_of("process", **filters), note)


def _lag(viewer: Viewer) -> dict[str, Any]:
    """The tile with the lag of the last hour. The lag is the time from the due instant to the start.

    A sample of the newest executions is enough for a percentile, and the index (state, -id) finds this sample fast.
    Only first attempts count, because a retry waits before it starts. A backfill was due long before it was asked for,
    so it does not count.
    """
    since, lags = viewer.now - LAG_SPAN, list[float]()
    for state in (State.SUCCEEDED, State.RUNNING) if viewer.present.count(watched.running) else (State.SUCCEEDED,):
        rows, columns = SchedulerExecution.objects.filter(state=state.value), LAG_COLUMNS
        for scheduled, assigned, started, attempt, trigger in newest_values(rows, viewer.visible, columns, LAG_SAMPLE):
            if attempt == 1 and trigger != Trigger.BACKFILL.value and started is not None and started >= since:
                lags.append(max(0.0, (started - (assigned or scheduled)).total_seconds()))
    lag = percentile(lags, 0.95)
    tone = "off" if lag is None else "good" if lag < 10 else "warn" if lag < 60 else "bad"
    value = EMPTY if lag is None else format_duration(lag)
    address, note = viewer.list_of("schedulerexecution", within="1h"), _("from due to started, last hour")
    return _tile(_("Lag, p95"), value, "warn" if tone == "bad" else "clock", tone, address, note)
