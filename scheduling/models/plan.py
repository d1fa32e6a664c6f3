"""The columns that determine when a schedule runs, and the next run that is planned from them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import and_
from typing import Any

from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.utils import timezone as clock
from django.utils.translation import gettext_lazy as _

from scheduling.conf import get_conf
from scheduling.core.assigned import Assigned
from scheduling.core.cron import CronError
from scheduling.core.messages import FIRST_YEAR
from scheduling.core.occurrences import first_run
from scheduling.core.planned import first_plan
from scheduling.models.exclusions import exclusions_of, version_of
from scheduling.models.own_timing import TIMING_COLUMNS, OwnTiming, assigned_of, has_own_timing, timing_problem
from scheduling.models.pausable import PAUSE, PausableModel
from scheduling.models.timetable import timetable_of

PLAN = ("schedule", "date_time", "timezone", "status", *TIMING_COLUMNS, "calendar_id")
"""The columns that determine `next_run_at`. Each column has a copy, `planned_<name>`."""

PLANNED = (
    "next_run_at", "next_nominal_at", "plan_error", "planned_at", "planned_calendar_version",
    *(f"planned_{name}" for name in PLAN), *PAUSE,
)  # fmt: skip
"""The columns that `plan` sets."""

INSTANTS = ("date_time", "active_from", "active_until")
"""The columns of `PLAN` that hold an instant."""

FIRST_INSTANT = datetime(FIRST_YEAR, 1, 1, tzinfo=UTC)
"""This project never writes a `next_run_at` that is earlier than this instant."""

OVERDUE_AFTER = timedelta(seconds=60)
"""A schedule that has been due for longer than this time is overdue. A running producer claims an occurrence within a
second. So if a schedule is overdue, probably no producer is running."""


class PlanState(models.IntegerChoices):
    """The state of a row's plan. The database itself computes and indexes the column `plan_state`."""

    CURRENT = 0
    STALE = 1
    """Plain SQL has changed a column of `PLAN`."""
    SET_ASIDE = 2
    """The schedule is active and cannot be planned or claimed."""
    WITHOUT_NEXT_RUN = 3
    """The schedule is active, and its time has passed or never comes."""


def has_ended(now: datetime) -> Q:
    """The active schedules that were active until an instant, and have no run before it any more.

    A calendar may leave a schedule without a run, too. So with a calendar, the instant must have passed.
    """
    over = Q(active_until__lte=now) | Q(calendar__isnull=True)
    return Q(plan_state=PlanState.WITHOUT_NEXT_RUN, active_until__isnull=False) & over


_MAY_BE_NULL = (
    "date_time", "spread_seconds", "missed_cap", "missed_within_seconds", "active_from", "active_until",
    "calendar_id",
)  # fmt: skip


def _is_current(name: str) -> Q:
    """Whether a column of `PLAN` is equal to its copy. NULL is equal to NULL."""
    same = Q(**{name: F(f"planned_{name}")})
    both_null = Q(**{f"{name}__isnull": True, f"planned_{name}__isnull": True})
    return same | both_null if name in _MAY_BE_NULL else same


_CURRENT = reduce(and_, map(_is_current, PLAN))


class PlannedModel(OwnTiming, PausableModel):
    """A row with the times of a schedule: a cron expression, an interval, or one date and time, and a time zone.

    `plan` computes `next_run_at` from the columns in `PLAN`, and copies these columns to the `planned_` columns. If
    plain SQL changes a column of `PLAN`, the column differs from its copy, and the generated column `plan_state`
    becomes STALE. The producers' sweep finds such rows by an index and plans them again. The cost of the sweep depends
    only on the number of changed rows.
    """

    schedule = models.CharField(
        _("schedule"),
        max_length=255,
        blank=True,
        default="",
        db_default="",
        help_text=_("A cron expression: minute, hour, day of month, month, weekday. Or an interval: @every 90m."),
    )
    date_time = models.DateTimeField(
        _("date and time"), null=True, blank=True, help_text=_("Runs once at this instant, and is then paused.")
    )
    timezone = models.CharField(
        _("time zone"),
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text=_("An IANA name such as Europe/Madrid."),
    )
    status = models.BooleanField(_("active"), default=True, db_default=True)

    next_run_at = models.DateTimeField(_("next run"), null=True, blank=True, editable=False, db_index=True)
    plan_error = models.CharField(max_length=500, blank=True, default="", db_default="", editable=False)
    """Why the row cannot be planned or claimed; empty if there is no error. `save` refuses a row that cannot be
    planned, but plain SQL can store such a row."""
    planned_at = models.DateTimeField(null=True, editable=False)
    """Since when the row has its present times. NULL if it has had them since before this column existed."""
    planned_schedule = models.CharField(max_length=255, null=True, editable=False)
    planned_date_time = models.DateTimeField(null=True, editable=False)
    planned_timezone = models.CharField(max_length=64, null=True, editable=False)
    planned_status = models.BooleanField(null=True, editable=False)
    planned_spread_seconds = models.PositiveIntegerField(null=True, editable=False)
    planned_spread_each = models.BooleanField(default=False, db_default=False, editable=False)
    planned_missed_runs = models.CharField(max_length=8, default="latest", db_default="latest", editable=False)
    planned_missed_cap = models.PositiveIntegerField(null=True, editable=False)
    planned_missed_within_seconds = models.PositiveIntegerField(null=True, editable=False)
    planned_active_from = models.DateTimeField(null=True, editable=False)
    planned_active_until = models.DateTimeField(null=True, editable=False)
    planned_on_excluded = models.CharField(max_length=8, default="skip", db_default="skip", editable=False)
    planned_calendar_id = models.BigIntegerField(null=True, editable=False)
    planned_calendar_version = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    """The version of the calendar by which the row is planned; 0 if it has no calendar."""
    plan_state = models.GeneratedField(
        expression=Case(
            When(
                _CURRENT,
                then=Case(
                    When(~Q(plan_error="") & Q(status=True), then=Value(PlanState.SET_ASIDE.value)),
                    When(next_run_at__isnull=True, status=True, then=Value(PlanState.WITHOUT_NEXT_RUN.value)),
                    default=Value(PlanState.CURRENT.value),
                ),
            ),
            default=Value(PlanState.STALE.value),
        ),
        output_field=models.SmallIntegerField(),
        db_persist=True,
    )

    class Meta:
        abstract = True

    @property
    def zone_name(self) -> str:
        """The row's IANA zone, or the default of the settings."""
        return self.timezone or get_conf().timezone

    def is_overdue(self, now: datetime) -> bool:
        """Whether the schedule is active and its occurrence has been due for more than a minute without a claim."""
        return self.status and self.next_run_at is not None and self.next_run_at < now - OVERDUE_AFTER

    def refresh_from_db(
        self, using: str | None = None, fields: Iterable[str] | None = None, from_queryset: Any = None
    ) -> None:
        """Load the row again, as Django does, and also `plan_state`.

        Where a database returns no columns from an INSERT, Django leaves `plan_state` out until it is asked for. It
        would then tell the state of that moment instead of the state at the load.
        """
        super().refresh_from_db(using, fields, from_queryset)
        if fields is None and "plan_state" in self.get_deferred_fields():
            super().refresh_from_db(using, ["plan_state"], from_queryset)

    def plan_changed(self) -> bool:
        """Whether a column of `PLAN` differs from its `planned_` copy."""
        return self.times_changed() or self.status != self.planned_status

    def times_changed(self, former: PlannedModel | None = None) -> bool:
        """Whether a column of `PLAN` other than the status differs from its `planned_` copy.

        Args:
            former: the row with the copies; None for this row.
        """
        copies = former or self
        return any(getattr(self, name) != getattr(copies, f"planned_{name}") for name in PLAN if name != "status")

    def plan(self, now: datetime | None = None) -> None:
        """Set `next_run_at` and the `planned_` columns, without saving.

        An occurrence that is already due stays in `next_run_at`, where a producer finds it. So an edit at the moment
        when an occurrence falls due neither loses nor repeats the occurrence.
        """
        now = now or clock.now()
        # Before the calendar is asked: if it changes in between, the row is planned again.
        self.planned_calendar_version = version_of(self.calendar_id)  # type: ignore[attr-defined]
        first = self.next_nominal_at or self.next_run_at
        if first is None or first > now:
            if self.status and self.schedule:
                timetable_of(self.schedule)  # refuses what this site does not allow
            self.next_run_at, self.next_nominal_at = self._first(now) if self.status else (None, None)
        self.plan_error = ""
        self._note_change(now)
        for name in PLAN:
            setattr(self, f"planned_{name}", getattr(self, name))

    def _first(self, now: datetime) -> tuple[datetime | None, datetime | None]:
        self.next_nominal_at = None
        if has_own_timing(self):
            return first_plan(self.assigned(), now)
        return first_run(self.schedule, self.date_time, self.zone_name, now), None

    def assigned(self) -> Assigned:
        """The assigned times of the row, with its calendar.

        Raises:
            CronError: the expression, or a rule that plain SQL has written, cannot be used.
        """
        if problem := timing_problem(self):
            raise CronError(problem)
        return assigned_of(self, exclusions_of([self]).get(self.pk))

    def _note_change(self, now: datetime) -> None:
        """Note since when the row has its present times, and since when it is paused."""
        first = self.status and not self.planned_status and self.paused_at is None
        if self.times_changed() or first:
            self.planned_at = now
        self.note_pause(self.status, self.planned_status, now)
