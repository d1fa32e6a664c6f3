"""Says in words what a process reported with its last heartbeat."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.ui.times import relative_time
from scheduling.core.text import visible_text
from scheduling.models import Process
from scheduling.models.process import CHOSEN, recorded_instant

MOST = 10**15
"""A greater number was not written by this software."""


def doing(row: Process, now: datetime) -> str:
    """What the process does, such as `1 of 4 runs, 14 since its start` or `claimed 14, the last one 6 s ago`.

    Plain SQL can write anything into the column. What is no report of this software is left out.
    """
    info = row.info if isinstance(row.info, dict) else {}
    found = _producer(info, now) if row.kind == Process.Kind.PRODUCER else _consumer(row, info, now)
    return ", ".join(found)


def _producer(info: dict[str, Any], now: datetime) -> list[str]:
    claimed, last = _number(info.get("claimed")), recorded_instant(info.get("last_dispatch"))
    found = []
    if claimed is not None:
        found.append(ngettext("%(count)d run claimed", "%(count)d runs claimed", claimed) % {"count": claimed})
    if last is not None:
        found.append(_("the last one %(when)s") % {"when": relative_time(last, now)})
    return found


def _consumer(row: Process, info: dict[str, Any], now: datetime) -> list[str]:
    running, runs = _number(info.get("running")), _number(info.get("runs"))
    found = []
    if running is not None and row.stopped_at is None and not row.is_silent(now):
        text = ngettext("%(count)d of %(slots)d slot busy", "%(count)d of %(slots)d slots busy", row.concurrency)
        found.append(text % {"count": running, "slots": row.concurrency})
    if runs is not None:
        found.append(ngettext("%(count)d run started", "%(count)d runs started", runs) % {"count": runs})
    if row.queue:
        found.append(_("queue “%(queue)s”") % {"queue": visible_text(row.queue, 40)})
    if isinstance(info.get(CHOSEN), str):
        found.append(visible_text(info[CHOSEN], 100))
    return found


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST else None
