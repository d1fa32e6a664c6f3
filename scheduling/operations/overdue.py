"""Explains to operators why an overdue schedule has no execution."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext as _

from scheduling.models import Process, Scheduler
from scheduling.operations.catch_up import catch_up_words
from scheduling.operations.times import relative_time


def overdue(row: Scheduler, now: datetime) -> list[str]:
    """Sentences that say why an overdue schedule has no execution; empty if the schedule is not overdue."""
    if row.next_run_at is None or not row.is_overdue(now):
        return []
    found = [_("It fell due %(when)s, and no producer has claimed it.") % {"when": relative_time(row.next_run_at, now)}]
    if not Process.objects.alive(now, Process.Kind.PRODUCER).exists():
        found.append(
            _("No producer is alive: start one with manage.py run_scheduler; what was missed runs or is told.")
        )
    return found + catch_up_words(row, now)
