"""A schedule in words, its zone, and a badge for a schedule that cannot be planned."""

from __future__ import annotations

from datetime import tzinfo
from zoneinfo import ZoneInfo

from django.utils import timezone as clock
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin.ui.badges import badge
from scheduling.admin.ui.times import format_instant
from scheduling.core.cron import ZoneError, zone
from scheduling.core.describe import describe
from scheduling.models import Scheduler


def in_words(scheduler: Scheduler) -> str:
    """The schedule as a sentence.

    Raises:
        CronError, ZoneError: the row is invalid. Only plain SQL can write such a row.
    """
    if scheduler.date_time is not None:
        return _("Once at %(instant)s") % {"instant": format_instant(scheduler.date_time, zone(scheduler.zone_name))}
    return describe(scheduler.schedule)


def zone_of(scheduler: Scheduler | None) -> ZoneInfo:
    """The zone in which pages write the times of a schedule and of its runs.

    A run without a schedule, and a schedule whose zone is unknown, have the viewer's zone.
    """
    try:
        return zone(scheduler.zone_name if scheduler is not None else clock.get_current_timezone_name())
    except ZoneError:
        return _viewers(clock.get_current_timezone())


def _viewers(current: tzinfo) -> ZoneInfo:
    return current if isinstance(current, ZoneInfo) else ZoneInfo("UTC")


def plan_error_badge(scheduler: Scheduler) -> SafeString:
    """A badge for a schedule that cannot be planned. The badge's title says why."""
    return badge(_("cannot be planned"), "warn", "bad", scheduler.plan_error)
