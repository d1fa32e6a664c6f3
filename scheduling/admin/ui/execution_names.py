"""The name of an execution on pages: `Import orders DE, 20:19 CET`."""

from __future__ import annotations

from datetime import datetime

from django.utils.translation import gettext as _

from scheduling.admin.ui.schedules import zone_of
from scheduling.admin.ui.targets import loaded_target, target_title
from scheduling.core.text import visible_text
from scheduling.models import SchedulerExecution


def execution_title(row: SchedulerExecution, now: datetime) -> str:
    """The schedule's name and the time at which the run was due, in the schedule's zone.

    Without a schedule, it is the title of the target. A time of another day has its date.
    """
    if row.scheduler is not None:
        name = visible_text(row.scheduler, 80)
    else:
        name = target_title(row.type, row.target_name or _("unreadable message"), loaded_target(row))
    return _("%(name)s, %(time)s") % {"name": name, "time": due_time(row, now)}


def due_time(row: SchedulerExecution, now: datetime) -> str:
    """When the run was due, such as `20:19 CET`, or `2026-03-10 20:19 CET` on another day than today."""
    place = zone_of(row.scheduler)
    due = row.scheduled_at.astimezone(place)
    today = due.date() == now.astimezone(place).date()
    return f"{due:{'%H:%M' if today else '%Y-%m-%d %H:%M'}} {due.tzname()}"
