"""What an attempt has recorded about its process: release, CPU time and peak memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.template.defaultfilters import filesizeformat
from django.utils.html import format_html
from django.utils.translation import gettext as _

from scheduling.admin.ui.times import format_duration
from scheduling.core.text import visible_text
from scheduling.models import Attempt, SchedulerExecution


def last_attempt_facts(row: SchedulerExecution, ended: Sequence[Attempt]) -> list[tuple[str, Any]]:
    """The facts of the newest attempt that has ended, as pairs of label and value. Unknown facts are left out.

    While a retry runs, these are the facts of the attempt before it. The table of the attempts shows them then.

    Args:
        ended: the attempts that have ended, the newest first.
    """
    if not ended or ended[0].number != row.attempt:
        return []
    last = ended[0]
    found = [
        (_("CPU time"), cpu_text(last)),
        (_("Peak memory"), memory_text(last)),
        (_("Release"), release_text(last)),
    ]
    return [(label, value) for label, value in found if value]


def used_texts(attempt: Attempt) -> list[str]:
    """The CPU time and the peak memory of the attempt, each with its word. What is unknown is left out."""
    cpu, memory = cpu_text(attempt), memory_text(attempt)
    found = [
        _("CPU %(time)s") % {"time": cpu} if cpu else "",
        _("memory %(size)s") % {"size": memory} if memory else "",
    ]
    return [text for text in found if text]


def cpu_text(attempt: Attempt) -> str:
    """The CPU time of the attempt; empty if it is unknown."""
    number = _number(attempt.cpu_ms)
    return "" if number is None else format_duration(number / 1000)


def memory_text(attempt: Attempt) -> str:
    """The peak memory of the attempt; empty if it is unknown."""
    number = _number(attempt.peak_memory_kb)
    return "" if number is None else filesizeformat(number * 1024)


def _number(value: object) -> int | None:
    """A stored figure. Plain SQL can write any value, and SQLite stores any type."""
    return value if type(value) is int and value >= 0 else None


def release_text(attempt: Attempt) -> str:
    """The release of the attempt; empty if it is unknown."""
    return format_html("<code>{}</code>", visible_text(attempt.release)) if attempt.release else ""
