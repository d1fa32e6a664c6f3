"""Calendar: named times at which the schedules that name it do not run."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar

from django.core.exceptions import ValidationError
from django.db import models, transaction
from django.db.models import Case, F, Q, Value, When
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from scheduling.conf import get_conf
from scheduling.core.calendar_entries import LONGEST_TEXT, wrong_lines
from scheduling.core.calendars import CalendarError, parse_calendar
from scheduling.core.text import visible_text
from scheduling.core.zones import ZoneError, zone
from scheduling.models.used_group import group_column

ERROR_LENGTH = 500
MOST_WRONG = 5
"""A refused text names at most so many wrong lines."""

READ = ("entries", "timezone")
"""The columns that say what is excluded. Each has a copy, `read_<name>`."""

_COPIES = tuple(f"read_{name}" for name in READ)

PLANNED = ("planned_version", *(f"planned_{name}" for name in READ))
"""The columns that the sweep writes when it has planned the schedules."""


LONG = ("entries", "read_entries", "planned_entries")
"""The columns that may be long. Lists do not load them."""


class CalendarState(models.IntegerChoices):
    """What is left to do for a calendar. The database itself computes and indexes the column `state`."""

    CURRENT = 0
    CHANGED = 1
    """Plain SQL has made the row, or has changed a column of `READ`."""
    SPREADING = 2
    """Schedules that name it are still planned by an earlier version."""


_READ = Q(entries=F("read_entries")) & Q(timezone=F("read_timezone"))


class Calendar(models.Model):
    """Dates, ranges and windows in one zone (`core.calendar_entries`), shared by many schedules.

    `version` is greater by 1 after each change of what is excluded. If plain SQL changes a column of `READ`, the column
    differs from its copy, and the generated column `state` becomes CHANGED. The producers' sweep finds such rows by an
    index, checks them, and gives them their next version.
    """

    name = models.CharField(_("name"), max_length=100, unique=True)
    description = models.CharField(_("description"), max_length=255, blank=True, default="", db_default="")
    timezone = models.CharField(
        _("time zone"), max_length=64, blank=True, default="", db_default="",
        help_text=_("An IANA name such as Europe/Madrid. The times of the entries are local times of this zone."),
    )  # fmt: skip
    entries = models.TextField(_("entries"), blank=True)
    """One entry a line. An empty text excludes nothing."""
    group = group_column(help_text=_("Only the members of this group, and users who see all groups, see the calendar."))

    version = models.PositiveIntegerField(default=1, db_default=1, editable=False)
    planned_version = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    """The version by which all schedules that name the calendar have been planned."""
    planned_entries = models.TextField(null=True, editable=False)
    planned_timezone = models.CharField(max_length=64, null=True, editable=False)
    """The entries and the zone of `planned_version`. What has fallen due by them is put on record by them."""
    read_entries = models.TextField(null=True, editable=False)
    read_timezone = models.CharField(max_length=64, null=True, editable=False)
    last_date = models.DateField(null=True, editable=False)
    """The last local day of the entries that name a year, as the entries were read; None if no entry does. When it is
    over, a finding asks for the dates of the next year."""
    error = models.CharField(max_length=ERROR_LENGTH, blank=True, default="", db_default="", editable=False)
    """Why the calendar cannot be used; empty if it can. `save` refuses such a calendar, but plain SQL can store one.
    No schedule that names it is planned until then."""
    state = models.GeneratedField(
        expression=Case(
            When(_READ & Q(version=F("planned_version")), then=Value(CalendarState.CURRENT.value)),
            When(_READ, then=Value(CalendarState.SPREADING.value)),
            default=Value(CalendarState.CHANGED.value),
        ),
        output_field=models.SmallIntegerField(),
        db_persist=True,
    )
    created_at = models.DateTimeField(_("created"), auto_now_add=True, db_default=Now())
    updated_at = models.DateTimeField(_("changed"), auto_now=True, db_default=Now())

    objects: ClassVar[models.Manager[Calendar]] = models.Manager()

    class Meta:
        verbose_name = _("calendar")
        verbose_name_plural = _("calendars")
        ordering = ["name"]
        indexes = [models.Index(fields=["state", "id"], name="scheduling_calendar_state")]

    def __str__(self) -> str:
        return visible_text(self.name)

    @property
    def zone_name(self) -> str:
        """The row's IANA zone, or the default of the settings."""
        return self.timezone or get_conf().timezone

    def clean_fields(self, exclude: Collection[str] | None = None) -> None:
        """Names the first wrong lines of the entries, and a wrong zone, each at its field."""
        problems: dict[str, Any] = {}
        try:
            super().clean_fields(exclude)
        except ValidationError as error:
            problems = error.update_error_dict(problems)
        for name, found in self.problems().items():
            if name not in problems and name not in (exclude or ()):
                problems[name] = [found]
        if problems:
            raise ValidationError(problems)

    def problems(self) -> dict[str, ValidationError]:
        """Why the calendar cannot be used, by column; empty if it can."""
        found: dict[str, ValidationError] = {}
        try:
            zone(self.zone_name)
        except ZoneError as error:
            found["timezone"] = ValidationError(str(error), code="timezone")
        try:
            parse_calendar(self.entries, "UTC")
        except CalendarError as error:
            too_long = len(self.entries) > LONGEST_TEXT
            said = [] if too_long else wrong_lines(self.entries, MOST_WRONG)
            found["entries"] = ValidationError([ValidationError(text, code="entries") for text in said or [str(error)]])
        if self.pk and self.group_id is not None and self._is_used_by_others():
            others = _("Schedules of another group, or without a group, use it. They would not see it any more.")
            found["group"] = ValidationError(others, code="group")
        return found

    def _is_used_by_others(self) -> bool:
        schedules: Any = Calendar._meta.get_field("schedulers").related_model
        return bool(schedules._default_manager.filter(calendar=self.pk).exclude(group=self.group_id).exists())

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Validate the row. If what is excluded has changed, give the row its next version. Then save the row.

        Raises:
            django.core.exceptions.ValidationError: the calendar cannot be used.
        """
        if problems := self.problems():
            raise ValidationError(problems)
        with transaction.atomic():
            if not self._state.adding:
                self._take_version()
                # A producer may have written the columns of its sweep since this row was loaded. They are not saved.
                columns = (one for one in self._meta.concrete_fields if not (one.primary_key or one.generated))
                names = {one.name for one in columns} - {*PLANNED}
                given = kwargs.get("update_fields")
                kwargs["update_fields"] = (
                    names if given is None else {*given, "version", "last_date", "error", "updated_at", *_COPIES}
                )
            self.last_date = parse_calendar(self.entries, "UTC").last_date
            self.read_entries, self.read_timezone, self.error = self.entries, self.timezone, ""
            super().save(*args, **kwargs)

    def _take_version(self) -> None:
        """Lock the stored row, and take the version that follows it if what is excluded changes."""
        rows = Calendar.objects.select_for_update().filter(pk=self.pk)
        stored = rows.values(*READ, *_COPIES, "version", "error").first()
        if stored is None:
            return
        changed = any(stored[name] != getattr(self, name) or stored[f"read_{name}"] != stored[name] for name in READ)
        self.version = stored["version"] + (1 if changed or stored["error"] else 0)
