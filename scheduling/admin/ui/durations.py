"""Writes how long a run took. The duration of a run is that of its last attempt, without any wait."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext as _

from scheduling.admin.ui.times import EMPTY, format_duration
from scheduling.core.durations import Usual
from scheduling.core.lifecycle import State
from scheduling.core.words import decimal

LEAST_WAIT = 1.0
"""A wait of less than this many seconds is not told."""


def took_words(state: str, started_at: datetime | None, ended_at: datetime | None, finished_at: datetime | None) -> str:
    """How long the last attempt took, such as `4 ms` or `4 ms, discarded after 1 min 38 s`; `EMPTY` if unknown.

    Args:
        started_at, ended_at: the start and the end of the attempt.
        finished_at: the end of the execution.
    """
    if started_at is None or ended_at is None:
        return EMPTY
    took = format_duration((ended_at - started_at).total_seconds())
    waited = (finished_at - ended_at).total_seconds() if finished_at is not None else 0.0
    if waited < LEAST_WAIT:
        return took
    facts = {"took": took, "waited": format_duration(waited)}
    if state == State.DISCARDED.value:
        return _("%(took)s, discarded after %(waited)s") % facts
    if state == State.CANCELLED.value:
        return _("%(took)s, cancelled after %(waited)s") % facts
    return took


def slow_words(seconds: float | None, known: Usual | None) -> str:
    """How much slower than usual a run was, such as `6x the median of 2 min 3 s`; empty if it was not slower."""
    times = known.times(seconds) if known is not None and seconds is not None else None
    if known is None or times is None:
        return ""
    factor = decimal(f"{times:.0f}" if times >= 9.95 else f"{times:.1f}".removesuffix(".0"))
    return _("%(times)sx the median of %(median)s") % {
        "times": factor,
        "median": format_duration(known.median),
    }
