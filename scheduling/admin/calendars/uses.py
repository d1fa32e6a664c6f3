"""Which schedules name a calendar. A calendar in use cannot be deleted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _

from scheduling.admin.common.viewer import Viewer
from scheduling.core.text import visible_text
from scheduling.models import Calendar, Scheduler
from scheduling.models.scheduler import load_names
from scheduling.models.visibility import Visibility

LISTED = 20
"""At most this many schedules are named."""


def schedules_of(calendars: Iterable[Calendar], visible: Visibility) -> list[Scheduler]:
    """The schedules that name one of the calendars and are seen, at most one more than LISTED."""
    keys = [row.pk for row in calendars]
    rows = list(visible.schedules().filter(calendar__in=keys).order_by("pk")[: LISTED + 1])
    load_names(rows)
    return rows


def uses_of(calendar: Calendar, viewer: Viewer) -> dict[str, Any]:
    """The template context: the schedules that name the calendar."""
    if not viewer.sees("scheduler"):
        return {}
    found = schedules_of([calendar], viewer.visible)
    return {
        "schedules": [{"name": visible_text(row, 80), "address": viewer.scheduler(row.pk)} for row in found[:LISTED]],
        "more": len(found) > LISTED,
    }


def why_protected(calendars: Iterable[Calendar], visible: Visibility) -> list[str]:
    """One sentence for each schedule that names one of the calendars, if the user may see the schedule."""
    said = _("The schedule “%(name)s” uses it. Choose another calendar for this schedule first.")
    rows = schedules_of(calendars, visible)[:LISTED]
    return [said % {"name": visible_text(row, 120)} for row in rows] or [_("Schedules that you may not see use it.")]
