"""The columns with the rules of a schedule that move, drop or catch up its occurrences (`core.timing`)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from scheduling.conf import get_conf
from scheduling.core.assigned import Assigned
from scheduling.core.messages import is_in_calendar
from scheduling.core.nominal import NominalTimes
from scheduling.core.overlap import runs_alone
from scheduling.core.timing import (
    LONGEST_SPREAD,
    LONGEST_WITHIN,
    MOST_CAUGHT_UP,
    USUALLY_CAUGHT_UP,
    Exclusions,
    MissedRuns,
    OnExcluded,
    Timing,
)
from scheduling.models.timetable import timetable_of

PLAIN: Mapping[str, Any] = {
    "spread_seconds": None,
    "spread_each": False,
    "missed_runs": MissedRuns.LATEST.value,
    "missed_cap": None,
    "missed_within_seconds": None,
    "active_from": None,
    "active_until": None,
    "on_excluded": OnExcluded.SKIP.value,
}
"""The columns of `OwnTiming`, each with the value that changes nothing."""

TIMING_COLUMNS = tuple(PLAIN)

IS_PLAIN = Q(next_nominal_at__isnull=True, calendar__isnull=True)
"""The schedules for which `has_own_timing` is false, as a condition of the database."""
for _name, _value in PLAIN.items():
    IS_PLAIN &= Q(**{f"{_name}__isnull": True}) if _value is None else Q(**{_name: _value})

_PLAIN_VALUES = tuple(PLAIN.values())

MISSED_CHOICES = [
    (MissedRuns.LATEST.value, _("run the latest one")),
    (MissedRuns.NONE.value, _("run none")),
    (MissedRuns.ALL.value, _("run them all")),
]
EXCLUDED_CHOICES = [
    (OnExcluded.SKIP.value, _("leave it out")),
    (OnExcluded.HOLD.value, _("hold it until the calendar allows it")),
]


class OwnTiming(models.Model):
    """A row with rules that say when an occurrence starts, and whether. The defaults change nothing."""

    spread_seconds = models.PositiveIntegerField(
        _("spread (s)"),
        null=True,
        blank=True,
        help_text=_(
            "Starts each run by a fixed offset later, which is less than this, so that schedules with the same times "
            "do not start at once. Empty: none."
        ),
    )
    spread_each = models.BooleanField(
        _("another offset each time"),
        default=False,
        db_default=False,
        help_text=_("Each run gets an offset of its own, instead of the same one."),
    )
    missed_runs = models.CharField(
        _("missed runs"),
        max_length=8,
        choices=MISSED_CHOICES,
        default=MissedRuns.LATEST.value,
        db_default=MissedRuns.LATEST.value,
        help_text=_("What happens to the runs that fell due while no producer ran."),
    )
    missed_cap = models.PositiveIntegerField(
        _("at most so many missed runs"),
        null=True,
        blank=True,
        help_text=_("If all missed runs are run: the newest, at most so many. Empty: 100."),
    )
    missed_within_seconds = models.PositiveIntegerField(
        _("age of missed runs (s)"),
        null=True,
        blank=True,
        help_text=_("What has been due for longer does not run. Empty: as the settings say."),
    )
    active_from = models.DateTimeField(_("active from"), null=True, blank=True)
    active_until = models.DateTimeField(_("active until"), null=True, blank=True)
    on_excluded = models.CharField(
        _("when a calendar excludes a run"),
        max_length=8,
        choices=EXCLUDED_CHOICES,
        default=OnExcluded.SKIP.value,
        db_default=OnExcluded.SKIP.value,
    )
    next_nominal_at = models.DateTimeField(null=True, editable=False)
    """The first instant of the times that is not on record yet, if it is not `next_run_at`: the run is spread or held,
    or a calendar excludes it. NULL: it is `next_run_at`."""

    class Meta:
        abstract = True


class Former:
    """The former times of a schedule: each column has the value of its `planned_` copy."""

    def __init__(self, row: Any) -> None:
        self._row = row

    def __getattr__(self, name: str) -> Any:
        row = self._row
        return getattr(row, f"planned_{name}" if hasattr(row, f"planned_{name}") else name)


def has_own_timing(row: Any) -> bool:
    """Whether a rule of the schedule changes when an occurrence starts, or whether.

    Args:
        row: a Scheduler, or an object with its columns.
    """
    timing = tuple(getattr(row, name) for name in TIMING_COLUMNS)
    return _is_own(timing, row.next_nominal_at, getattr(row, "calendar_id", None))


def values_have_own_timing(values: Mapping[str, Any]) -> bool:
    """The same.

    Args:
        values: the columns of a Scheduler by their names.
    """
    timing = tuple(values[name] for name in TIMING_COLUMNS)
    return _is_own(timing, values["next_nominal_at"], values["calendar_id"])


def _is_own(timing: tuple[Any, ...], next_nominal_at: object, calendar: object) -> bool:
    return timing != _PLAIN_VALUES or next_nominal_at is not None or calendar is not None


def assigned_of(row: Any, excluded: Exclusions | None) -> Assigned:
    """The assigned times of a schedule.

    Args:
        row: a Scheduler, or an object with its columns.
        excluded: its calendar.

    Raises:
        CronError: the expression cannot be read.
        ValueError: plain SQL has written an unknown word.
    """
    cron = timetable_of(row.schedule or "") if row.date_time is None else None
    conf = get_conf()
    times = NominalTimes(
        cron, row.timezone or conf.timezone, row.date_time, since=row.active_from, until=row.active_until
    )
    within = conf.catch_up_seconds if row.missed_within_seconds is None else row.missed_within_seconds
    missed_runs = MissedRuns(row.missed_runs)
    if missed_runs is MissedRuns.ALL and runs_alone(row.overlap, row.stay_alive):
        missed_runs = MissedRuns.LATEST  # only one of them could start
    return Assigned(
        times,
        Timing(
            within=timedelta(seconds=within),
            spread=timedelta(seconds=row.spread_seconds or 0),
            each=row.spread_each,
            missed_runs=missed_runs,
            cap=row.missed_cap or USUALLY_CAUGHT_UP,
            on_excluded=OnExcluded(row.on_excluded),
            excluded=excluded,
        ),
        row.id,
    )


def timing_errors(row: Any) -> dict[str, ValidationError]:
    """Maps the name of each column with a value that cannot be used to the error; empty if all can be used."""
    bounds = {
        "spread_seconds": (1, LONGEST_SPREAD),
        "missed_cap": (1, MOST_CAUGHT_UP),
        "missed_within_seconds": (1, LONGEST_WITHIN),
    }
    found = {name: _number(getattr(row, name), *span) for name, span in bounds.items()}
    words = {"missed_runs": MISSED_CHOICES, "on_excluded": EXCLUDED_CHOICES}
    found |= {name: _word(getattr(row, name), [value for value, _label in known]) for name, known in words.items()}
    found |= {name: _instant(getattr(row, name)) for name in ("active_from", "active_until")}
    if not isinstance(row.spread_each, bool):
        found["spread_each"] = ValidationError(_("It is either on or off."), code="timing")
    problems = {name: error for name, error in found.items() if error is not None}
    for name, error in _contradictions(row):
        problems.setdefault(name, error)
    return problems


def timing_problem(row: Any) -> str:
    """The first sentence of `timing_errors`, with the name of its column; empty if all values can be used."""
    for name, error in timing_errors(row).items():
        return f"{name}: {' '.join(error.messages)}"
    return ""


def _number(value: object, low: int, high: int) -> ValidationError | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and low <= value <= high):
        return None
    said = _("It must be a whole number from %(low)s to %(high)s.")
    return ValidationError(said, code="timing", params={"low": low, "high": high})


def _word(value: object, known: list[str]) -> ValidationError | None:
    if value in known:
        return None
    said = _("It must be one of: %(known)s.")
    return ValidationError(said, code="timing", params={"known": ", ".join(known)})


def _instant(value: object) -> ValidationError | None:
    if value is None or (isinstance(value, datetime) and is_in_calendar(value)):
        return None
    return ValidationError(_("It is not a date and time that can be used."), code="timing")


def _contradictions(row: Any) -> list[tuple[str, ValidationError]]:
    def wrong(name: str, said: Any) -> tuple[str, ValidationError]:
        return name, ValidationError(said, code="timing")

    found = []
    since, until = row.active_from, row.active_until
    if isinstance(since, datetime) and isinstance(until, datetime) and until < since:
        found.append(wrong("active_until", _("The end lies before the beginning.")))
    if row.spread_each and not row.spread_seconds:
        found.append(wrong("spread_each", _("There is no spread that this could change.")))
    if row.missed_cap is not None and row.missed_runs != MissedRuns.ALL.value:
        found.append(wrong("missed_cap", _("A number has a meaning only if all missed runs are run.")))
    if row.missed_within_seconds is not None and row.missed_runs == MissedRuns.NONE.value:
        found.append(wrong("missed_within_seconds", _("No missed run is run, so their age has no meaning.")))
    if row.date_time is not None:
        found += _with_date(row, wrong)
    if row.stay_alive:
        service = _("A service runs all the time. Only its times start it, so leave this as it is.")
        found += [wrong(name, service) for name in _used(row)]
    return found


def _used(row: Any) -> list[str]:
    """The rules that are not the usual ones."""
    own = [name for name, plain in PLAIN.items() if getattr(row, name) != plain]
    return [*own, "calendar"] if getattr(row, "calendar_id", None) is not None else own


def _with_date(row: Any, wrong: Any) -> list[tuple[str, ValidationError]]:
    found = []
    if row.spread_seconds:
        found.append(wrong("spread_seconds", _("A schedule with one date and time starts at this time.")))
    if isinstance(row.date_time, datetime):
        outside = _("The date and time lies outside.")
        if isinstance(row.active_from, datetime) and row.date_time < row.active_from:
            found.append(wrong("active_from", outside))
        if isinstance(row.active_until, datetime) and row.date_time > row.active_until:
            found.append(wrong("active_until", outside))
    return found
