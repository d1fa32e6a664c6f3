"""Scheduler: a stored schedule and the target that it runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any, ClassVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.db.models import Q, prefetch_related_objects
from django.utils import timezone as clock
from django.utils.translation import gettext_lazy as _
from django.utils.translation import gettext_noop

from scheduling.core.pings import URL_LENGTH
from scheduling.core.targets import TARGET_KINDS, TARGETS
from scheduling.core.text import visible_text
from scheduling.models.after import AfterModel
from scheduling.models.calendar import Calendar
from scheduling.models.decided import not_before
from scheduling.models.overlap import OPEN_COLUMNS, SERVICE_TARGET, OverlapModel
from scheduling.models.own_queue import OwnQueue
from scheduling.models.own_retention import OwnRetention
from scheduling.models.own_retry_policy import OwnRetryPolicy
from scheduling.models.plan import OVERDUE_AFTER, PLAN, PLANNED, PlannedModel, PlanState
from scheduling.models.run_bounds import COUNTED_RUNS, RunBounds
from scheduling.models.schedule_checks import ONE_TARGET, ONE_TIME, form_problems, stored_problems
from scheduling.models.schedule_names import DEFAULT_MARK, name_for_others, shown_name
from scheduling.models.used_group import group_column

OPTIONAL_TEXT: dict[str, Any] = {"blank": True, "default": "", "db_default": ""}
"""Options of an optional text column: a form, code or plain SQL may leave out the column."""

OWN_NUMBERS = (*OPEN_COLUMNS, *COUNTED_RUNS, "revision")
"""Columns that a save leaves alone, because other transactions count them up."""


def _only(target: str) -> Q:
    return Q(**{f"{name}__isnull": name != target for name in TARGETS})


class SchedulerQuerySet(models.QuerySet["Scheduler"]):
    """Filters of schedules."""

    def overdue(self, now: datetime) -> SchedulerQuerySet:
        """The schedules for which `is_overdue` is true, the earliest `next_run_at` first."""
        return self.filter(status=True, next_run_at__lt=now - OVERDUE_AFTER).order_by("next_run_at", "pk")


class Scheduler(OwnRetryPolicy, OwnRetention, OwnQueue, OverlapModel, AfterModel, RunBounds, PlannedModel):
    """A stored schedule: when to run (see `PlannedModel`) and what to run (one target).

    If a column of `PLAN` has changed, `save` plans the next run.
    """

    name = models.CharField(_("name"), max_length=120, null=True, blank=True, unique=True, editable=False)
    """The name by which code (`scheduling.api.schedule`), schedule files, HTTP and commands find the schedule. After
    `DEFAULT_MARK` stands the name of the worker whose `@worker(schedule=)` the schedule was made from. NULL: operators
    have made the schedule, and have given it no name."""
    source_file = models.CharField(_("schedule file"), max_length=200, editable=False, **OPTIONAL_TEXT)
    """The name of the schedule file that owns the row; empty if no file does."""
    params = models.JSONField(_("parameters"), default=dict, blank=True)
    pause_reason = models.CharField(
        _("reason for the pause"),
        max_length=500,
        help_text=_("Shown beside the paused schedule. Removed when it is resumed."),
        **OPTIONAL_TEXT,
    )
    description = models.CharField(_("description"), max_length=255, **OPTIONAL_TEXT)

    # The foreign keys of the targets (worker, report, reminder) are added below the class.
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", verbose_name=_("user")
    )
    group = group_column(
        help_text=_("Only the members of this group, and users who see all groups, see the schedule and its runs.")
    )
    calendar = models.ForeignKey(
        "scheduling.Calendar", models.PROTECT, null=True, blank=True, related_name="schedulers",
        db_index=False, verbose_name=_("calendar"), help_text=_("It does not run at the times of this calendar."),
    )  # fmt: skip
    language = models.CharField(_("language"), max_length=16, **OPTIONAL_TEXT)

    time_limit = models.PositiveIntegerField(
        _("time limit (s)"), null=True, blank=True, help_text=_("Empty: as the handler or the settings say. 0: none.")
    )

    ping_url = models.CharField(_("ping URL"), max_length=URL_LENGTH, editable=False, **OPTIONAL_TEXT)
    """The address of a monitor that is told about each run (`core.pings`), or `${CRON_PING_…}`. It is a secret, so it
    is not editable: no form, history entry or list takes it along by itself."""

    revision = models.PositiveIntegerField(null=True, editable=False)
    """The number of the newest `ScheduleRevision`. NULL until the row is noticed that plain SQL has inserted."""

    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    objects: ClassVar[models.Manager[Scheduler]] = SchedulerQuerySet.as_manager()

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=reduce(or_, map(_only, TARGETS)),
                name="scheduling_scheduler_one_target",
                violation_error_message=ONE_TARGET,
            ),
            models.CheckConstraint(
                condition=Q(stay_alive=False) | Q(worker__isnull=False),
                name="scheduling_scheduler_service",
                violation_error_message=SERVICE_TARGET,
            ),
            models.CheckConstraint(
                condition=(Q(date_time__isnull=True) & ~Q(schedule="")) | (Q(date_time__isnull=False) & Q(schedule="")),
                name="scheduling_scheduler_one_time",
                violation_error_message=ONE_TIME,
            ),
        ]
        indexes = [
            models.Index(fields=["plan_state", "id"], name="scheduling_sched_plan"),
            models.Index(fields=["calendar", "planned_calendar_version"], name="scheduling_sched_calendar"),
            models.Index(fields=["stay_alive", "status"], name="scheduling_sched_services"),
        ]
        permissions = [
            ("run_scheduler", gettext_noop("Can run a schedule now")),
            ("backfill_scheduler", gettext_noop("Can backfill a schedule")),
            ("pause_scheduler", gettext_noop("Can pause and resume a schedule")),
            ("view_all_groups", gettext_noop("Can see the schedules and runs of all groups")),
        ]

    changed_at: datetime | None = None
    """The instant from which on the plan of the last `save` holds; None if it has planned nothing."""

    _stored_language = ""
    """The language that the row had when it was loaded. A row may keep a language that the settings have lost."""

    @classmethod
    def from_db(cls, *args: Any, **kwargs: Any) -> Scheduler:
        row = super().from_db(*args, **kwargs)
        row._stored_language = row.__dict__.get("language", "")
        return row

    def __str__(self) -> str:
        own = shown_name(self.description, self.name)
        return visible_text(own or f"{self.target or '?'} {self.schedule or self.date_time}")

    @property
    def name_for_others(self) -> str:
        """The name by which code, files, requests and commands find the schedule; empty if it has none, or if its name
        only says which worker it was made from."""
        return name_for_others(self.name)

    @property
    def is_worker_default(self) -> bool:
        """Whether the schedule was made from the `schedule=` of a registered worker."""
        return str(self.name or "").startswith(DEFAULT_MARK)

    @property
    def paused_because(self) -> str:
        """The reason given for the pause; empty when the schedule is active or no reason was given."""
        return "" if self.status else self.pause_reason

    @property
    def target_type(self) -> str:
        """One of `TARGETS`; empty if no target is chosen yet."""
        return next((name for name in TARGETS if getattr(self, f"{name}_id")), "")

    @property
    def target_id(self) -> int | None:
        """The primary key of the target row."""
        return getattr(self, f"{self.target_type}_id") if self.target_type else None

    @property
    def target(self) -> models.Model | None:
        """The target row."""
        return getattr(self, self.target_type) if self.target_type else None

    def clean(self) -> None:
        if problems := form_problems(self):
            raise ValidationError(problems)

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Validate the row. If a column of `PLAN` has changed, plan the next run. Then save the row.

        Raises:
            django.core.exceptions.ValidationError: the plan, the retry policy, the retention, the queue or the params
                are invalid.
        """
        if problems := stored_problems(self):
            raise ValidationError(problems)
        # The change and its revision are one transaction (`execution.revisions`).
        with transaction.atomic(using=kwargs.get("using")):
            self._save(*args, **kwargs)

    def _save(self, *args: Any, **kwargs: Any) -> None:
        self.changed_at = None
        fields = kwargs.get("update_fields")
        had_reason = bool(self.pause_reason)
        if self.status and had_reason:
            self.pause_reason = ""
            fields = kwargs["update_fields"] = None if fields is None else {*fields, "pause_reason"}
        if not self.plan_changed() and not self._state.adding:
            if fields is None:
                # A producer may have changed the plan since this row was loaded, and may have paused the schedule. So
                # neither the plan nor its columns are saved.
                columns = (field for field in self._meta.concrete_fields if not (field.primary_key or field.generated))
                kept = {*PLANNED, *OWN_NUMBERS, *self._unchanged(had_reason)}
                kwargs["update_fields"] = {field.name for field in columns if field.attname not in kept}
            super().save(*args, **kwargs)
            return
        if fields is not None:
            kwargs["update_fields"] = {*fields, *PLANNED}
        # The row stays locked until it is saved. So of two users who resume it at once, only one ends the pause.
        with transaction.atomic():
            adding = self._state.adding
            if not adding:
                self._take_stored()
            self.changed_at = not_before(self, clock.now())
            self.plan(self.changed_at)
            super().save(*args, **kwargs)
            if adding and self.spread_seconds:
                self._spread()
            self._note_calendar()

    def _unchanged(self, had_reason: bool) -> Collection[str]:
        """The columns of `PLAN`, and the empty reason of an active row: a save that does not change the plan leaves
        them alone. If plain SQL had changed the plan when the row was loaded, this save may take the change back."""
        if self.__dict__.get("plan_state") == PlanState.STALE:
            return ()
        return PLAN if had_reason or not self.status else (*PLAN, "pause_reason")

    def _spread(self) -> None:
        """Plan the row again, because its offset is computed from its number."""
        self.plan()
        own = {"next_run_at": self.next_run_at, "next_nominal_at": self.next_nominal_at}
        type(self)._default_manager.filter(pk=self.pk).update(**own)

    def _note_calendar(self) -> None:
        """Let the sweep plan the row again if its calendar has changed before the commit. Later changes find the row.

        It is asked after the commit. A lock until then could wait for a lock that the database itself takes for the
        foreign key, and that another save holds, too.
        """
        if self.calendar_id is None:
            return
        changed = Calendar.objects.filter(pk=self.calendar_id).exclude(version=self.planned_calendar_version)
        transaction.on_commit(lambda: changed.update(planned_version=0), robust=True)

    def _take_stored(self) -> None:
        """Lock the stored row, and take from it what a producer or another user may have changed since the load."""
        rows = type(self)._default_manager.select_for_update().filter(pk=self.pk)
        # The copies of the former times, too: the plan of another user's times must not be judged by earlier ones.
        stored = rows.values(*(name for name in PLANNED if name != "plan_error"), *OWN_NUMBERS).get()
        if stored["planned_status"] and not self.status:
            stored["paused_by"] = self.paused_by[:150]  # this save pauses the schedule
        for name, value in stored.items():
            setattr(self, name, value)


for _type, _kind in TARGET_KINDS.items():
    _key = models.ForeignKey(
        _kind.model, models.PROTECT, null=True, blank=True, related_name="schedulers", verbose_name=_(_type)
    )
    Scheduler.add_to_class(_type, _key)


def load_names(rows: Iterable[Scheduler]) -> None:
    """Load the targets of the schedules without a description and a name: `str` then needs the name of the target."""
    unnamed = [row for row in rows if not shown_name(row.description, row.name)]
    prefetch_related_objects(unnamed, *TARGETS)
