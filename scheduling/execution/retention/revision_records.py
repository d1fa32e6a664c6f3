"""Removes old revisions of schedules that no execution names any more."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from scheduling.execution.retention.pruned import Pruned
from scheduling.models import Scheduler, ScheduleRevision, SchedulerExecution

BATCH = 500


def remove_revisions(cutoff: datetime, done: Pruned, *, dry_run: bool, batch: int = BATCH) -> None:
    """Remove the revisions from before the cutoff. The newest one of a schedule stays, and so do those that may be
    named by one of its executions: all from the one on that its oldest execution names.
    """
    after = 0
    while True:
        old = ScheduleRevision.objects.filter(at__lt=cutoff, pk__gt=after).order_by("pk")
        rows = list(old.values_list("pk", "schedule", "number")[:batch])
        if not rows:
            return
        after = rows[-1][0]
        first = {schedule: _first_kept(schedule) for schedule in {schedule for _pk, schedule, _number in rows}}
        keys = [pk for pk, schedule, number in rows if number < first[schedule]]
        if keys and not dry_run:
            found = ScheduleRevision.objects.filter(pk__in=keys)
            found._raw_delete(found.db)
        done.revisions += len(keys)


def _first_kept(schedule: int) -> int:
    """The lowest number that stays. Of a deleted schedule, none stays."""
    rows = list(Scheduler.objects.filter(pk=schedule).values_list("revision", flat=True))
    if not rows:
        return 2**31
    present = rows[0] or 0
    own = SchedulerExecution.objects.filter(Q(scheduler=schedule), revision__isnull=False).order_by("pk")
    named = own.values_list("revision", flat=True).first()
    return present if named is None else min(named, present)
