"""Makes the table of an execution's attempts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from scheduling.admin.executions.attempt_facts import release_text, used_texts
from scheduling.admin.ui.badges import outcome_badge, state_badge
from scheduling.admin.ui.text import first_line
from scheduling.admin.ui.times import EMPTY, duration_between, relative_time, time_tag, time_with_relative
from scheduling.core.known_sentences import in_language
from scheduling.core.lifecycle import State
from scheduling.core.outcome import signal_name
from scheduling.core.text import visible_text
from scheduling.models import Attempt, SchedulerExecution

MOST_ATTEMPTS = 100


def ended_attempts(row: SchedulerExecution) -> list[Attempt]:
    """The attempts that have ended, the newest first."""
    return list(
        Attempt.objects.filter(execution=row.pk).defer("traceback", "result").order_by("-number")[:MOST_ATTEMPTS]
    )


def attempt_rows(row: SchedulerExecution, ended: Sequence[Attempt], now: datetime) -> list[dict[str, Any]]:
    """The lines of the table: first the running attempt, which has no Attempt row yet, then the ended attempts."""
    running = row.state == State.RUNNING.value
    next_starts = [row.started_at if running else None, *(attempt.started_at for attempt in ended)]
    rows = [_ended(attempt, next_start) for attempt, next_start in zip(ended, next_starts, strict=False)]
    return [_running(row, now), *rows] if running else rows


def _running(row: SchedulerExecution, now: datetime) -> dict[str, Any]:
    ended = relative_time(row.wake_at, now) if row.wake_at is not None and row.wake_at < now else ""
    return {
        "number": row.attempt,
        "chip": state_badge(row.state),
        "consumer": visible_text(row.consumer),
        "pid": row.pid,
        "started": time_with_relative(row.started_at, now),
        "took": duration_between(row.started_at, now),
        "end": _("its lease ended %(time)s") % {"time": ended} if ended else "",
        "error": visible_text(row.progress),
        "wait": EMPTY,
        "release": "",
        "used": [],
    }


def _ended(attempt: Attempt, next_start: datetime | None) -> dict[str, Any]:
    error = (
        f"{visible_text(attempt.error_class)}: {first_line(in_language(attempt.error_message))}"
        if attempt.error_class
        else ""
    )
    if attempt.outcome in (Attempt.Outcome.SNOOZED, Attempt.Outcome.SKIPPED):
        error = first_line(in_language(attempt.error_message))  # the reason
    return {
        "number": attempt.number,
        "chip": outcome_badge(attempt.outcome),
        "consumer": visible_text(attempt.consumer),
        "pid": attempt.pid,
        "started": time_tag(attempt.started_at),
        "took": duration_between(attempt.started_at, attempt.finished_at),
        "end": exit_text(attempt),
        "error": error,
        # Only a retry is planned when its attempt ends. A run that has snoozed, for example, waits as long as it says.
        "wait": duration_between(attempt.finished_at, attempt.retry_at or next_start),
        "release": release_text(attempt),
        "used": used_texts(attempt),
    }


def exit_text(attempt: Attempt) -> str:
    """The exit code or the signal with which the attempt's process ended; empty if both are unknown."""
    if attempt.signal is not None:
        return _("signal %(name)s") % {"name": signal_name(attempt.signal)}
    return "" if attempt.exit_code is None else _("exit code %(code)s") % {"code": attempt.exit_code}
