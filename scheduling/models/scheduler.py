"""Scheduler: a stored schedule and what it runs."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Case, F, Q, Value, When
from django.utils import timezone as clock
from django.utils.translation import gettext_lazy as _

from scheduling.conf import get_conf
from scheduling.core.cron import CronError, ZoneError, next_after, parse, zone
from scheduling.core.occurrences import first_run
from scheduling.core.retry import RetryPolicy, RetryPolicyInvalid
from scheduling.core.text import shown

TARGETS = ("report", "worker", "reminder")

PLAN = ("schedule", "date_time", "timezone", "status")
"""The columns from which `next_run_at` follows; each has a `planned_` twin."""


def _only(target: str) -> Q:
    return Q(**{f"{name}__isnull": name != target for name in TARGETS})


class Scheduler(models.Model):
    """When (cron or one date and time, in a zone) and what (one report, worker or reminder).

    `next_run_at` is kept by `save`. Each row also remembers the columns it was planned from;
    where those differ (a plain SQL update), the generated column `plan_stale` says so, is
    indexed, and the producers' sweep plans the row anew: the cost follows the edits, not the rows.
    """

    schedule = models.CharField(
        _("schedule"),
        max_length=255,
        blank=True,
        default="",
        db_default="",
        help_text=_("A cron expression: minute, hour, day of month, month, weekday."),
    )
    date_time = models.DateTimeField(
        _("date and time"), null=True, blank=True, help_text=_("Runs once at this instant, then switches itself off.")
    )
    timezone = models.CharField(
        _("time zone"),
        max_length=64,
        blank=True,
        default="",
        db_default="",
        help_text=_("An IANA name such as Europe/Madrid."),
    )
    params = models.JSONField(_("parameters"), default=dict, blank=True)
    status = models.BooleanField(_("active"), default=True, db_default=True)
    pause_reason = models.CharField(
        _("reason for the pause"),
        max_length=500,
        blank=True,
        default="",
        db_default="",
        help_text=_("Shown to whoever asks why it does not run; forgotten when it is switched on."),
    )
    stay_alive = models.BooleanField(
        _("standalone"),
        default=False,
        db_default=False,
        help_text=_("Runs in the standalone consumer, apart from the others."),
    )
    description = models.CharField(_("description"), max_length=255, blank=True, default="", db_default="")

    report = models.ForeignKey(
        "reports.Report", null=True, blank=True, on_delete=models.PROTECT, related_name="schedulers"
    )
    worker = models.ForeignKey(
        "scheduling.Worker", null=True, blank=True, on_delete=models.PROTECT, related_name="schedulers"
    )
    reminder = models.ForeignKey(
        "scheduling.Reminder", null=True, blank=True, on_delete=models.PROTECT, related_name="schedulers"
    )
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="+",
        verbose_name=_("user"),
    )
    group = models.ForeignKey("auth.Group", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    language = models.CharField(_("language"), max_length=16, blank=True, default="", db_default="")

    max_retries = models.PositiveSmallIntegerField(
        _("retries"), null=True, blank=True, help_text=_("0 to 19. Empty: as the handler or the settings say.")
    )
    retry_delay_ms = models.PositiveIntegerField(_("first retry delay (ms)"), null=True, blank=True)
    retry_multiplier = models.FloatField(_("delay multiplier"), null=True, blank=True)
    retry_max_delay_ms = models.PositiveIntegerField(_("longest delay (ms)"), null=True, blank=True)
    retry_jitter = models.BooleanField(_("jitter"), null=True, blank=True)
    time_limit = models.PositiveIntegerField(
        _("time limit (s)"), null=True, blank=True, help_text=_("Empty: as the handler or the settings say. 0: none.")
    )

    next_run_at = models.DateTimeField(_("next run"), null=True, blank=True, editable=False, db_index=True)
    plan_error = models.CharField(max_length=500, blank=True, default="", db_default="", editable=False)
    """Why the row cannot be planned; only plain SQL can bring a row here."""
    planned_schedule = models.CharField(max_length=255, null=True, editable=False)
    planned_date_time = models.DateTimeField(null=True, editable=False)
    planned_timezone = models.CharField(max_length=64, null=True, editable=False)
    planned_status = models.BooleanField(null=True, editable=False)
    plan_stale = models.GeneratedField(
        expression=Case(
            When(
                Q(schedule=F("planned_schedule"))
                & Q(timezone=F("planned_timezone"))
                & Q(status=F("planned_status"))
                & (Q(date_time=F("planned_date_time")) | Q(date_time__isnull=True, planned_date_time__isnull=True)),
                then=Value(0),
            ),
            default=Value(1),
        ),
        output_field=models.SmallIntegerField(),
        db_persist=True,
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True)
    updated_at = models.DateTimeField(_("changed"), auto_now=True)

    class Meta:
        verbose_name = _("schedule")
        verbose_name_plural = _("schedules")
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                condition=_only("report") | _only("worker") | _only("reminder"),
                name="scheduling_scheduler_one_target",
                violation_error_message=_("Choose exactly one target: a report, a worker or a reminder."),
            ),
            models.CheckConstraint(
                condition=(Q(date_time__isnull=True) & ~Q(schedule="")) | (Q(date_time__isnull=False) & Q(schedule="")),
                name="scheduling_scheduler_one_time",
                violation_error_message=_("Give either a cron schedule or one date and time."),
            ),
        ]
        indexes = [models.Index(fields=["plan_stale"], name="scheduling_sched_stale")]
        permissions = [
            ("run_scheduler", "Can run a schedule now"),
            ("pause_scheduler", "Can switch a schedule on and off"),
        ]

    def __str__(self) -> str:
        return shown(self.description or f"{self.target or '?'} {self.schedule or self.date_time}")

    @property
    def zone_name(self) -> str:
        """The row's IANA zone, or the default of the settings."""
        return self.timezone or get_conf().timezone

    @property
    def paused_because(self) -> str:
        """The reason that was given for the pause; empty when it is on, or when none was given."""
        return "" if self.status else self.pause_reason

    @property
    def target_type(self) -> str:
        """`report`, `worker` or `reminder`; empty when nothing is chosen yet."""
        return next((name for name in TARGETS if getattr(self, f"{name}_id")), "")

    @property
    def target_id(self) -> int | None:
        """The target row's key."""
        return getattr(self, f"{self.target_type}_id") if self.target_type else None

    @property
    def target(self) -> models.Model | None:
        """The target row."""
        return getattr(self, self.target_type) if self.target_type else None

    def retry_policy(self, base: RetryPolicy) -> RetryPolicy:
        """The row's own policy over `base` (the handler's or the settings').

        Raises:
            RetryPolicyInvalid: naming what is out of bounds.
        """
        own = {
            "max_retries": self.max_retries,
            "delay_ms": self.retry_delay_ms,
            "multiplier": self.retry_multiplier,
            "max_delay_ms": self.retry_max_delay_ms,
            "jitter": self.retry_jitter,
        }
        given = {name: value for name, value in own.items() if value is not None}
        if not given:
            return base
        merged = {name: given.get(name, getattr(base, name)) for name in own}
        if "max_delay_ms" not in given:
            # A longer first delay than the inherited ceiling raises the ceiling with it.
            merged["max_delay_ms"] = max(merged["max_delay_ms"], merged["delay_ms"])
        return RetryPolicy(**merged)

    def clean(self) -> None:
        """Refuse what cannot run, at the field it concerns."""
        problems: dict[str, ValidationError] = {}
        if sum(getattr(self, f"{name}_id") is not None for name in TARGETS) != 1:
            problems["worker"] = ValidationError(
                _("Choose exactly one target: a report, a worker or a reminder."), code="target"
            )
        if bool(self.schedule) == (self.date_time is not None):
            problems["schedule"] = ValidationError(_("Give either a cron schedule or one date and time."), code="time")
        self._clean_plan(problems)
        if problems:
            raise ValidationError(problems)

    def _clean_plan(self, problems: dict[str, ValidationError]) -> None:
        try:
            zone(self.zone_name)
        except ZoneError as error:
            problems["timezone"] = ValidationError(str(error), code="timezone")
        if self.schedule:
            try:
                # Not parse alone: some expressions only ever match inside one zone's clock change.
                next_after(parse(self.schedule), "UTC" if "timezone" in problems else self.zone_name, clock.now())
            except CronError as error:
                problems["schedule"] = ValidationError(str(error), code="schedule")
        if self.date_time is not None and self.status and self._plan_changed() and self.date_time <= clock.now():
            problems["date_time"] = ValidationError(
                _("This instant has passed. Choose one in the future."), code="past"
            )
        try:
            # Over the smallest policy: what is inherited is the target's or the settings' to answer for.
            self.retry_policy(RetryPolicy(max_retries=0, delay_ms=1_000))
        except RetryPolicyInvalid as error:
            field = {"max_retries": "max_retries"}.get(error.field, f"retry_{error.field}")
            problems[field] = ValidationError(str(error), code=error.code)
        if not isinstance(self.params, dict):
            problems["params"] = ValidationError(_("Parameters are a JSON object."), code="params")

    def _plan_changed(self) -> bool:
        return any(getattr(self, name) != getattr(self, f"planned_{name}") for name in PLAN)

    def plan(self, now: Any = None) -> None:
        """Set `next_run_at` and the `planned_` twins from the row's columns; nothing is written.

        An occurrence that is already due stays in `next_run_at` and is left to the producers, so
        that an edit in the same second neither loses nor repeats it.
        """
        now = now or clock.now()
        due = self.next_run_at is not None and self.next_run_at <= now
        if not due:
            self.next_run_at = first_run(self.schedule, self.date_time, self.zone_name, now) if self.status else None
        self.plan_error = ""
        for name in PLAN:
            setattr(self, f"planned_{name}", getattr(self, name))

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Refuse nonsense, and plan the next run when what it follows from has changed.

        Raises:
            django.core.exceptions.ValidationError: for an unusable plan or policy.
        """
        problems: dict[str, ValidationError] = {}
        self._clean_plan(problems)
        if problems:
            raise ValidationError(problems)
        fields = kwargs.get("update_fields")
        if self.status and self.pause_reason:
            self.pause_reason = ""
            fields = kwargs["update_fields"] = None if fields is None else {*fields, "pause_reason"}
        planned = {"next_run_at", "plan_error", *(f"planned_{name}" for name in PLAN)}
        if self._plan_changed() or self._state.adding:
            if not self._state.adding:
                self.next_run_at = type(self)._default_manager.values_list("next_run_at", flat=True).get(pk=self.pk)
            self.plan()
            if fields is not None:
                kwargs["update_fields"] = {*fields, *planned}
        elif fields is None:
            # The form was loaded before the producer moved `next_run_at` on: do not write it back.
            kwargs["update_fields"] = {
                field.name for field in self._meta.concrete_fields if not field.primary_key and not field.generated
            } - planned
        super().save(*args, **kwargs)
