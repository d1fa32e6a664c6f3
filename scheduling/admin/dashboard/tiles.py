"""Tiles: the numbers one looks at first, each a link to the rows behind it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.dashboard.figures import count, percentile
from scheduling.admin.dashboard.viewer import Viewer
from scheduling.admin.oldest import oldest_failure
from scheduling.admin.parts import EMPTY, icon, length, relative
from scheduling.core.lifecycle import State
from scheduling.models import Process, SchedulerExecution
from scheduling.reconcile import SILENT_AFTER

LAG_SAMPLE = 1_000
LAG_SPAN = timedelta(hours=1)

FORGOTTEN_AFTER = timedelta(days=1)
"""A process that was killed stays silent for good: after a day it is history, and no alarm any more."""


@dataclass(frozen=True)
class Tile:
    """A number with its name; `tone` colours it, `note` says the rest in words."""

    name: str
    value: object
    icon: str
    tone: str
    address: str
    note: str = ""


def tiles(viewer: Viewer) -> dict[str, Any]:
    """The row of tiles, and one sentence of the counts for screen readers."""
    rows = SchedulerExecution.objects.all()
    queued = count(rows.filter(state__in=[State.CLAIMED.value, State.QUEUED.value]))
    running, retrying, failed = (
        count(rows.filter(state=state.value)) for state in (State.RUNNING, State.RETRYING, State.FAILED)
    )
    shown = [
        Tile(_("Queued"), queued, icon("clock"), "wait", _executions(viewer, State.QUEUED)),
        Tile(_("Running"), running, icon("play"), "busy", _executions(viewer, State.RUNNING)),
        Tile(
            _("Retrying"), retrying, icon("again"), "warn" if retrying else "off", _executions(viewer, State.RETRYING)
        ),
        Tile(
            _("Failed"),
            failed,
            icon("cross" if failed else "check"),
            "bad" if failed else "good",
            viewer.list_of("failedexecution") or _executions(viewer, State.FAILED),
            _oldest_failed(viewer.now) if failed else _("The inbox is empty."),
        ),
        *_processes(viewer),
        _lag(viewer),
    ]
    said = _("%(queued)s queued, %(running)s running, %(retrying)s retrying, %(failed)s failed") % {
        "queued": queued, "running": running, "retrying": retrying, "failed": failed,
    }  # fmt: skip
    return {"tiles": shown, "said": said}


def presence(now: datetime) -> dict[str, tuple[list[Process], list[Process]]]:
    """For each kind of process those alive, and those silent since less than a day."""
    found: dict[str, tuple[list[Process], list[Process]]] = {kind.value: ([], []) for kind in Process.Kind}
    rows = Process.objects.filter(stopped_at__isnull=True, heartbeat_at__gte=now - FORGOTTEN_AFTER)
    for row in rows.order_by("-heartbeat_at"):
        alive, silent = found.setdefault(row.kind, ([], []))
        (alive if row.heartbeat_at >= now - SILENT_AFTER else silent).append(row)
    return found


def _executions(viewer: Viewer, state: State) -> str:
    return viewer.list_of("schedulerexecution", state=state.value)


def _oldest_failed(now: datetime) -> str:
    oldest = oldest_failure()
    return _("The oldest: %(age)s") % {"age": relative(oldest, now)} if oldest else ""


def _processes(viewer: Viewer) -> list[Tile]:
    names = {Process.Kind.PRODUCER.value: _("Producers"), Process.Kind.CONSUMER.value: _("Consumers")}
    shown = []
    for kind, (alive, silent) in presence(viewer.now).items():
        if kind not in names:
            continue
        note = ngettext("%(count)d silent", "%(count)d silent", len(silent)) % {"count": len(silent)} if silent else ""
        tone = "bad" if not alive else "warn" if silent else "good"
        word = _("none alive") if not alive else _("alive")
        shown.append(
            Tile(
                names[kind],
                len(alive),
                icon("check" if tone == "good" else "warn"),
                tone,
                viewer.list_of("process", kind=kind, **({"presence": "silent"} if silent and alive else {})),
                f"{word}, {note}" if note else word,
            )
        )
    return shown


def _lag(viewer: Viewer) -> Tile:
    """Of the newest that started, and no more than a sample: a percentile needs no more than that.

    Read through the index (state, -id); only first attempts, for a retry is late by design.
    """
    since, lags = viewer.now - LAG_SPAN, list[float]()
    for state in (State.SUCCEEDED, State.RUNNING):
        rows = SchedulerExecution.objects.filter(state=state.value).order_by("-pk")
        for scheduled, started, attempt in rows.values_list("scheduled_at", "started_at", "attempt")[:LAG_SAMPLE]:
            if attempt == 1 and started is not None and started >= since:
                lags.append(max(0.0, (started - scheduled).total_seconds()))
    lag = percentile(lags, 0.95)
    tone = "off" if lag is None else "good" if lag < 10 else "warn" if lag < 60 else "bad"
    return Tile(
        _("Lag, p95"),
        EMPTY if lag is None else length(lag),
        icon("warn" if tone == "bad" else "clock"),
        tone,
        viewer.list_of("schedulerexecution", within="1h"),
        _("scheduled to started, last hour"),
    )
