"""A schedule in words, and the zone in which its times are written."""

from __future__ import annotations

from datetime import tzinfo
from zoneinfo import ZoneInfo

from django.utils import timezone as clock
from django.utils.translation import gettext as _

from scheduling.conf import get_conf
from scheduling.core.cron import ZoneError, zone
from scheduling.core.describe import describe
from scheduling.models import Scheduler
from scheduling.operations.times import format_instant


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
    return zone_named(scheduler.zone_name if scheduler is not None else clock.get_current_timezone_name())


def zone_named(name: str) -> ZoneInfo:
    """The zone with this name; the settings' zone if the name is empty, and the viewer's if it is unknown."""
    try:
        return zone(name or get_conf().timezone)
    except ZoneError:
        return _viewers(clock.get_current_timezone())


def _viewers(current: tzinfo) -> ZoneInfo:
    return current if isinstance(current, ZoneInfo) else ZoneInfo("UTC")
