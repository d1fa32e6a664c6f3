"""Says why an execution was to start later than it was due: its schedule is spread, or a calendar held it."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, tzinfo

from django.utils.translation import gettext as _

from scheduling.core.cron import CronError, ZoneError
from scheduling.core.expected import Fate, fate_of
from scheduling.core.known_sentences import for_reader
from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution
from scheduling.operations.times import format_instant


def moved_words(row: SchedulerExecution, info: tzinfo) -> str:
    """The sentence; empty if the execution was to start when it was due, or if it was skipped.

    The rules of the schedule may have changed since. Then the sentence says only to when the start was moved.
    """
    if not isinstance(row.assigned_at, datetime) or row.state == State.SKIPPED.value:
        return ""
    at, schedule, expected = {"at": format_instant(row.assigned_at, info)}, row.scheduler, None
    with suppress(CronError, ZoneError):  # plain SQL has written it; the page of the schedule says so
        expected = fate_of(schedule.assigned(), row.scheduled_at) if schedule is not None else None
    if expected is not None and expected.starts_at == row.assigned_at:
        if expected.fate is Fate.HELD:
            why = for_reader(expected.why, 300).rstrip(".")
            return _("A calendar held it until %(at)s: %(why)s.") % (at | {"why": why})
        return _("Its schedule is spread, so it was to start at %(at)s.") % at
    return _("By the rules that its schedule had then, it was to start at %(at)s.") % at
