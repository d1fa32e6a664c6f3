"""Findings about zone data (tzdata): runs that new data has moved, and producers with different data."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC

from django.utils.translation import gettext as _

from scheduling.core.text import visible_text
from scheduling.execution.zone_plan import INFO
from scheduling.models import MovedRun, Process
from scheduling.monitoring.findings.finding import Finding, Named, named, warn
from scheduling.monitoring.findings.present import Present
from scheduling.monitoring.findings.watched import moved_runs


def examine(present: Present) -> Iterator[Finding]:
    """Report what new zone data has moved, and producers that do not agree."""
    moved = warn(
        "moved runs",
        _("New zone data has moved the next runs of schedules: %(count)s."),
        _("See on the page Moved runs whether the new times are those that you want."),
    )
    rows = present.visible.with_schedules(present.rows(moved_runs))
    yield from named(moved, rows, _named, total=present.count(moved_runs))
    yield from _different(present)


def _named(row: MovedRun) -> Named:
    seen = row.scheduler
    name = visible_text(seen, 80) if seen is not None else _("a deleted schedule")
    old, new = (f"{at.astimezone(UTC):%Y-%m-%d %H:%M}" for at in (row.old_at, row.new_at))
    times = {"old": old, "new": new}
    return Named(name, _("from %(old)s to %(new)s UTC") % times, None if seen is None else seen.pk)


def _different(present: Present) -> Iterator[Finding]:
    producers = [process for process in present.alive if process.kind == Process.Kind.PRODUCER]
    data = {digest for process in producers if (digest := _digest(process))}
    if len(data) > 1:
        finding = warn(
            "zone data",
            _("Producers use different zone data (tzdata): %(count)s."),
            _("Give all hosts the same version of tzdata, and restart the producers."),
        )
        yield from named(finding, producers, lambda process: Named(visible_text(process, 60), _digest(process)[:12]))


def _digest(process: Process) -> str:
    found = process.info.get(INFO) if isinstance(process.info, dict) else None
    return visible_text(found, 64) if isinstance(found, str) else ""
