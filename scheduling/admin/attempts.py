"""The table of an execution's attempts."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.parts import first_line, length, outcome_chip, relative, shown, stamp, state_chip, took, when
from scheduling.core.lifecycle import State
from scheduling.models import Attempt, SchedulerExecution

MOST_ATTEMPTS = 100


@dataclass(frozen=True)
class AttemptRow:
    """One line of the table of attempts."""

    number: int
    chip: SafeString
    consumer: str
    pid: int | None
    started: str
    took: str
    end: str = ""
    error: str = ""
    wait: str = ""


def ended_attempts(row: SchedulerExecution) -> list[Attempt]:
    """Those that are over, the last first."""
    return list(Attempt.objects.filter(execution=row.pk).defer("traceback").order_by("-number")[:MOST_ATTEMPTS])


def attempt_rows(row: SchedulerExecution, ended: Sequence[Attempt], now: datetime) -> list[AttemptRow]:
    """The running attempt, which has no row of its own yet, and below it those that ended, the last first."""
    rows = [_ended(each) for each in ended]
    if row.state == State.RUNNING.value:
        over = row.wake_at is not None and row.wake_at < now
        lease = _("its lease ended %(time)s") if over else _("its lease ends %(time)s")
        rows.insert(
            0,
            AttemptRow(
                number=row.attempt,
                chip=state_chip(row.state),
                consumer=shown(row.consumer),
                pid=row.pid,
                started=when(row.started_at, now),
                took=took(row.started_at, now),
                end=lease % {"time": relative(row.wake_at, now)} if row.wake_at else "",
                error=shown(row.progress),
            ),
        )
    return rows


def _ended(each: Attempt) -> AttemptRow:
    wait = ""
    if each.retry_at is not None:
        wait = length((each.retry_at - each.finished_at).total_seconds())
    return AttemptRow(
        number=each.number,
        chip=outcome_chip(each.outcome),
        consumer=shown(each.consumer),
        pid=each.pid,
        started=stamp(each.started_at),
        took=took(each.started_at, each.finished_at),
        end=exit_text(each),
        error=f"{shown(each.error_class)}: {first_line(each.error_message)}" if each.error_class else "",
        wait=wait,
    )


def exit_text(each: Attempt) -> str:
    """How the process ended, where that is known."""
    if each.signal is not None:
        try:
            name = signal.Signals(each.signal).name
        except ValueError:
            name = str(each.signal)
        return _("signal %(name)s") % {"name": name}
    return "" if each.exit_code is None else _("exit code %(code)s") % {"code": each.exit_code}
