"""Findings about processes that run old code: a file changed after the process had loaded it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from django.utils.translation import gettext as _

from scheduling.core.text import visible_text
from scheduling.models import Process
from scheduling.monitoring.findings.finding import Finding, Named, named, warn

SAME_DAY = timedelta(hours=20)
"""A time that is further away is written with its date."""


def examine(alive: Iterable[Process], now: datetime) -> Iterator[Finding]:
    """Report which of the alive processes run old code."""
    finding = warn(
        "old code",
        _("Processes that run old code: %(count)s."),
        _("Restart these processes: source files have changed since they loaded them."),
    )
    rows = sorted((process for process in alive if process.code_changed_at is not None), key=lambda row: row.pk)
    yield from named(finding, rows, lambda process: _named(process, now))


def old_code_words(process: Process, now: datetime) -> str:
    """The age of a process's code: `runs the code of 19:17 UTC, but the files changed at 19:29 UTC: restart it`.

    Empty if no file has changed since the process loaded it.
    """
    if process.code_changed_at is None:
        return ""
    changed = short_time(process.code_changed_at, now)
    if process.code_at is None:
        return _("runs old code, the files changed at %(changed)s: restart it") % {"changed": changed}
    times = {"loaded": short_time(process.code_at, now), "changed": changed}
    return _("runs the code of %(loaded)s, but the files changed at %(changed)s: restart it") % times


def short_time(instant: datetime, now: datetime) -> str:
    """An instant in UTC, such as `19:17 UTC`; with the date if it is not of the last hours."""
    near = abs(instant - now) < SAME_DAY
    return f"{instant.astimezone(UTC):{'%H:%M' if near else '%Y-%m-%d %H:%M'}} UTC"


def _named(process: Process, now: datetime) -> Named:
    name = f"{process.get_kind_display()} {visible_text(process.container_id, 60)}"
    return Named(name, old_code_words(process, now))
