"""Collects the findings that come from database rows, by area."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from scheduling.monitoring.findings import (
    alerts,
    bad_rows,
    breakers,
    calendars,
    deployment,
    heartbeat,
    inbox,
    pauses,
    pings,
    processes,
    queues,
    runs,
    schedules,
    zone_data,
)
from scheduling.monitoring.findings.finding import Finding, Level, severity
from scheduling.monitoring.findings.present import Present

AREAS: dict[str, Callable[[Present], Iterator[Finding]]] = {
    "deployment": deployment.examine,
    "alerts": alerts.examine,
    "heartbeat": heartbeat.examine,
    "schedules": schedules.examine,
    "processes": processes.examine,
    "queues": queues.examine,
    "pauses": pauses.examine,
    "breakers": breakers.examine,
    "runs": runs.examine,
    "inbox": inbox.examine,
    "pings": pings.examine,
    "calendars": calendars.examine,
    "zones": zone_data.examine,
    "rows": bad_rows.examine,
}


def problems(present: Present) -> list[Finding]:
    """The findings of level FAIL, then the findings of level WARN."""
    found = chain.from_iterable(examine(present) for examine in AREAS.values())
    return sorted((finding for finding in found if finding.level is not Level.OK), key=severity, reverse=True)
