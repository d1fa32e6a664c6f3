"""What a stored schedule must keep to, whichever door its values came through."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.utils import timezone as clock
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from scheduling.core import json_bounds
from scheduling.core.cron import CronError, ZoneError, next_after, zone
from scheduling.core.messages import FIRST_YEAR, LAST_YEAR, is_in_calendar
from scheduling.core.retry import DELAY_MS, RetryPolicy
from scheduling.core.targets import TARGETS
from scheduling.models.calendar import Calendar
from scheduling.models.exclusions import calendar
from scheduling.models.overlap import SERVICE_TARGET
from scheduling.models.own_timing import timing_errors
from scheduling.models.timetable import timetable_of

ONE_TIME = _("Give either a cron schedule or one date and time.")
SERVICE_PING = _("The run of a service never ends, so no monitor can be told its end. Remove the ping URL.")
ONE_TARGET = _("Choose exactly one target: a worker, a report or a reminder.")


def form_problems(row: Any) -> dict[str, ValidationError]:
    """All problems of a Scheduler that a form has filled, by field."""
    problems: dict[str, ValidationError] = {}
    if sum(getattr(row, f"{name}_id") is not None for name in TARGETS) != 1:
        problems[TARGETS[0]] = ValidationError(ONE_TARGET, code="target")
    if bool(row.schedule) == (row.date_time is not None):
        problems["schedule"] = ValidationError(ONE_TIME, code="time")
    if row.stay_alive and row.target_type not in ("", "worker"):
        problems["stay_alive"] = ValidationError(SERVICE_TARGET, code="stay_alive")
    if row.stay_alive and row.ping_url:
        problems["stay_alive"] = ValidationError(SERVICE_PING, code="ping_url")
    if row.stay_alive and "stay_alive" not in problems and (said := row.awaited_problem()):
        problems["stay_alive"] = ValidationError(said, code="after")
    return problems | stored_problems(row)


def stored_problems(row: Any) -> dict[str, ValidationError]:
    """The problems because of which `save` refuses a Scheduler, by field."""
    problems: dict[str, ValidationError] = {}
    try:
        zone(row.zone_name)
    except ZoneError as error:
        problems["timezone"] = ValidationError(str(error), code="timezone")
    if row.schedule:
        try:
            # Parsing is not enough: an expression may match only local times that the zone's clock change skips.
            times = timetable_of(row.schedule)
            next_after(times, "UTC" if "timezone" in problems else row.zone_name, clock.now())
        except CronError as error:
            problems["schedule"] = ValidationError(str(error), code="schedule")
    if (wrong := _date_problem(row)) is not None:
        problems["date_time"] = wrong
    # Only the schedule's own values are checked here, so `base` has the lowest allowed values. The values of the
    # handler and of the settings are checked where they are set.
    problems |= row.retry_errors(RetryPolicy(max_retries=0, delay_ms=DELAY_MS[0]))
    problems |= row.retention_errors()
    problems |= timing_errors(row)
    problems |= row.queue_errors(service=row.stay_alive)
    problems |= _calendar_problems(row)
    problems |= row.overlap_errors()
    problems |= row.bound_errors(service=row.stay_alive, one_time=row.date_time is not None)
    problems |= row.after_errors()
    if row.language and row.language != row._stored_language and row.language not in dict(settings.LANGUAGES):
        offered = ", ".join(sorted(code for code, _name in settings.LANGUAGES))
        unknown = _("The setting LANGUAGES has no language %(code)s. It has: %(offered)s.")
        facts = {"code": repr(row.language), "offered": offered}
        problems["language"] = ValidationError(unknown, code="language", params=facts)
    if not isinstance(row.params, dict):
        problems["params"] = ValidationError(_("Parameters are a JSON object."), code="params")
    elif problem := json_bounds.problem(gettext("The JSON"), row.params):
        problems["params"] = ValidationError(problem, code="params")
    return problems


def _calendar_problems(row: Any) -> dict[str, ValidationError]:
    """Each user who sees the schedule sees its calendar, too."""
    if row.calendar_id is None:
        return {}
    said: Any = ""
    found = list(Calendar.objects.filter(pk=row.calendar_id).values_list("group", flat=True))
    if not found:
        said = _("There is no such calendar.")
    elif found[0] is not None and found[0] != row.group_id:
        said = _("The calendar belongs to a group. Only schedules of the same group can name it.")
    elif row.status:
        said = calendar(row.calendar_id).problem
    return {"calendar": ValidationError(said, code="calendar")} if said else {}


def _date_problem(row: Any) -> ValidationError | None:
    if not isinstance(row.date_time, datetime):
        return None  # no date, or a text that Django has not read yet
    if not is_in_calendar(row.date_time):
        beyond = _("It must lie between the years %(first)s and %(last)s.")
        return ValidationError(beyond % {"first": FIRST_YEAR, "last": LAST_YEAR}, code="range")
    if row.status and row.plan_changed() and row.date_time <= clock.now():
        return ValidationError(_("This instant has passed. Choose one in the future."), code="past")
    return None
