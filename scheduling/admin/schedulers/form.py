"""The Scheduler's form. The form shows each error as a sentence beside the field."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.text import capfirst
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from scheduling.admin.common.time_span_field import RETRY_LABELS, TimeSpanField
from scheduling.admin.params.field import ParamsField, ParamsWidget
from scheduling.admin.schedulers.after_fields import AfterFields
from scheduling.admin.schedulers.chosen_params import chosen_target, params_form, params_problem
from scheduling.admin.schedulers.cron_input import CronInput
from scheduling.admin.schedulers.languages import language_choices
from scheduling.admin.schedulers.ping_fields import PingFields
from scheduling.admin.schedulers.retention_panel import inherited_retention
from scheduling.admin.schedulers.retry_panel import RETRY_NUMBERS, inherited_hints
from scheduling.admin.schedulers.wall_clock import WallClockField
from scheduling.admin.ui.datalist import DatalistInput
from scheduling.conf import get_conf
from scheduling.core.after import Late, Span
from scheduling.core.cron import ZoneError, resolve_again, zone, zone_names
from scheduling.core.retention import OWN
from scheduling.core.retry import BOUNDS, spelled
from scheduling.core.targets import TARGETS
from scheduling.core.text import visible_text
from scheduling.core.timing import MissedRuns, OnExcluded
from scheduling.handlers.retry_policy import inherited_policy
from scheduling.handlers.targets import find_target, handler_of
from scheduling.handlers.validation import mark_checked, service_error
from scheduling.models import Calendar, Scheduler
from scheduling.models.calendar import LONG
from scheduling.models.own_retry_policy import RETRY_COLUMNS
from scheduling.models.own_timing import TIMING_COLUMNS
from scheduling.models.plan import INSTANTS
from scheduling.models.run_bounds import BOUNDS as BOUNDS_OF_RUNS
from scheduling.models.schedule_revision import REASON_LENGTH
from scheduling.models.time_words import format_span

SWITCH = ("paused", "pause_reason")
"""Fields that the pause and resume buttons may change while this form is open."""

TIMES = ("schedule", "date_time", "timezone")

USUAL = {
    "missed_runs": MissedRuns.LATEST.value,
    "on_excluded": OnExcluded.SKIP.value,
    "after_span": Span.DAY.value,
    "after_late": Late.SKIP.value,
}
"""What a choice is that a form leaves out."""


class SchedulerForm(AfterFields, PingFields):
    """The form to add and edit a schedule.

    The form keeps two values for the audit entry. `former` has the values before the edit. `former_code` is the handler
    of the target before the edit.
    """

    date_time = WallClockField(
        required=False,
        label=_("Date and time"),
        help_text=_("Instead of a cron expression: runs once at this time in the time zone below, and is then paused."),
    )
    paused = forms.BooleanField(
        required=False,
        label=_("Paused"),
        help_text=_(
            "No further run is scheduled until it is resumed. Runs already queued or running continue. "
            "It can still be run by hand. A service ends."
        ),
    )
    """The opposite of the column `status`."""
    spread_seconds = TimeSpanField(
        unit=1_000,
        label=_("Spread"),
        help_text=_(
            "Such as 30m. Each run starts by an offset later that is less than this, so that schedules with the same "
            "times do not start at once. Empty: none."
        ),
    )
    missed_within_seconds = TimeSpanField(
        unit=1_000,
        label=_("Missed runs, not older than"),
        help_text=_("Such as 2h. A run that has been due for longer does not run. Empty: as the settings say."),
    )
    active_from = WallClockField(
        required=False, label=_("Active from"), help_text=_("In the time zone above. Empty: no beginning.")
    )
    active_until = WallClockField(
        required=False, label=_("Active until"), help_text=_("In the time zone above. Empty: no end.")
    )
    params = ParamsField(label=_("Parameters"), required=False)
    retry_delay_ms = TimeSpanField(label=RETRY_LABELS["retry_delay_ms"])
    retry_max_delay_ms = TimeSpanField(label=RETRY_LABELS["retry_max_delay_ms"])
    time_limit = TimeSpanField(
        unit=1_000,
        label=_("Time limit"),
        help_text=_(
            "Such as 10m or 2h. Empty: the value of the target's code, else of the site's settings. 0s: no limit."
        ),
    )

    change_reason = forms.CharField(
        required=False,
        max_length=REASON_LENGTH,
        label=_("Reason for the change"),
        help_text=_("Optional. The history shows it."),
        widget=forms.TextInput(attrs={"class": "vTextField"}),
    )
    """Why the schedule is changed. Its revision keeps it."""
    start_within_seconds = TimeSpanField(
        unit=1_000,
        label=_("Start deadline"),
        help_text=_(
            "Such as 10m or 2h. An occurrence that has not started so long after it was due does not run. Empty: no "
            "deadline."
        ),
    )

    source: Scheduler | None = None
    """The schedule that is copied, if this form adds a copy."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        row: Scheduler = self.instance
        if self.source is not None and not self.is_bound:
            self._show_copied(row, self.source)
        elif not row.pk and not self.is_bound:
            self._show_chosen(row)
        if row.pk:
            self.initial["paused"] = not row.status
        self.former = {**self.initial, **{name: getattr(row, name) for name in INSTANTS}}
        self.former_code = handler_of(row)
        for name in INSTANTS:
            if getattr(row, name) is not None:
                self.initial[name] = wall(row, name)
        # A user who may only view gets a form without fields.
        if "schedule" in self.fields:
            self._dress(row)

    @staticmethod
    def _show_copied(row: Scheduler, source: Scheduler) -> None:
        """The panels of an empty form show the instance, so it gets the copied times, target and retry policy."""
        for name in (*TIMES, *TARGETS, *RETRY_COLUMNS, *TIMING_COLUMNS):
            setattr(row, name, getattr(source, name))
        row.status = False

    def _show_chosen(self, row: Scheduler) -> None:
        """The panels of an empty form show the instance, so it gets the target that the address names."""
        if (chosen := chosen_target(self.initial)) is not None:
            setattr(row, chosen[0], find_target(*chosen))

    def _dress(self, row: Scheduler) -> None:
        widget = self.fields["params"].widget
        assert isinstance(widget, ParamsWidget)  # noqa: S101 - the widget of ParamsField
        widget.form = params_form(self.source or row, self.data if self.is_bound else None, self.initial)
        widget.form.told_elsewhere = True
        schedule, zone_field = self.fields["schedule"], self.fields["timezone"]
        schedule.widget, schedule.help_text = CronInput(), ""
        zone_field.widget = DatalistInput(zone_names(), {"class": "vTextField", "placeholder": get_conf().timezone})
        zone_field.help_text = _("An IANA name such as Europe/Madrid. Empty: %(zone)s.") % {"zone": get_conf().timezone}
        self._dress_calendar(row)
        self.fields["language"] = forms.ChoiceField(
            choices=language_choices(row.language, self.visible),
            required=False,
            label=capfirst(self.fields["language"].label or ""),
        )
        for name in SWITCH:
            self.fields[name].show_hidden_initial = not self.is_bound or self.add_initial_prefix(name) in self.data
        self._dress_retry(row)
        self.fields["missed_cap"].label = _("Missed runs, at most")
        self.fields["overlap"].help_text = _(
            "What happens when a run is due and the run before it is not over. “Run now” obeys it, too, unless its "
            "page is told otherwise. A service never runs twice."
        )
        for name in USUAL:
            self.fields[name].required = False  # a form that does not have it chooses what is usual
        self.fields["missed_within_seconds"].widget.attrs |= {"placeholder": format_span(get_conf().catch_up_seconds)}
        for name, hint in inherited_retention().items():
            low, high = OWN
            self.fields[name].widget.attrs |= {"placeholder": hint, "min": low, "max": high}
        for name in ("max_runs", "pause_after_failures"):
            low, high = BOUNDS_OF_RUNS[name]
            self.fields[name].widget.attrs |= {"placeholder": _("none"), "min": low, "max": high}

    def _dress_calendar(self, row: Scheduler) -> None:
        """Offers the calendars that the user sees. The chosen one stays, even if the user does not see it."""
        field: Any = self.fields["calendar"]
        rows = self.visible.calendars() | Calendar.objects.filter(pk=row.calendar_id or 0)
        field.queryset = rows.defer(*LONG)
        field.label_from_instance = self._calendar_label

    def _calendar_label(self, row: Any) -> str:
        name = visible_text(row.name, 100) if self.visible.shows(row) else gettext("a calendar of another group")
        return f"{name} ({gettext('cannot be used')})" if row.error else name

    def _dress_retry(self, row: Scheduler) -> None:
        hints = inherited_hints(inherited_policy(handler_of(row)))
        for name, attribute in RETRY_NUMBERS.items():
            self.fields[name].widget.attrs |= {"placeholder": hints[name], "class": "sch-amount"}
            low, high = (spelled(attribute, bound) for bound in BOUNDS[attribute])
            self.fields[name].help_text = _("%(low)s to %(high)s. Empty: inherited.") % {"low": low, "high": high}
        self.fields["retry_jitter"].widget.choices = [
            ("unknown", hints["retry_jitter"]),
            ("true", _("On")),
            ("false", _("Off")),
        ]
        self.fields["retry_jitter"].help_text = _("Randomly shortens each wait by up to half.")

    def clean(self) -> dict[str, Any]:
        """Reads date and time in the schedule's zone. Keeps the stored values of unchanged SWITCH fields."""
        data = super().clean() or self.cleaned_data
        for name, usual in USUAL.items():
            data[name] = data.get(name) or usual
        for name in SWITCH:
            # If the schedule was paused while this form was open, saving the form must not resume the schedule.
            if self.instance.pk and self.fields[name].show_hidden_initial and name not in self.changed_data:
                data[name] = self.initial[name]
        shown = self.source or self.instance  # the model has not taken the typed values yet
        for name in INSTANTS:
            local = data.get(name)
            if isinstance(local, datetime) and local.tzinfo is None:
                try:
                    tz = data.get("timezone") or get_conf().timezone
                    data[name] = resolve_again(local, tz, getattr(shown, name))
                except ZoneError:
                    data[name] = local.replace(tzinfo=UTC)  # the zone's field shows the error
                except ValueError as error:
                    self.add_error(name, ValidationError(str(error), code="range"))
        return data

    def _post_clean(self) -> None:
        if "paused" in self.cleaned_data:
            self.instance.status = not self.cleaned_data["paused"]
        super()._post_clean()
        row: Scheduler = self.instance
        if "date_time" in self.errors and self.has_error("schedule", code="time"):
            # The user gave an invalid date. The error "neither a date nor a schedule is given" would be misleading.
            del self.errors["schedule"]
        if not {"params", *TARGETS} & set(self.errors):
            self._check_params(row)
        if not {"stay_alive", *TARGETS} & set(self.errors) and (problem := service_error(row)):
            self.add_error("stay_alive", ValidationError(problem, code="stay_alive"))
        if not {*RETRY_COLUMNS, *TARGETS} & set(self.errors):
            # The model has checked only the row's own retry values. A run combines these values with the target's
            # policy, so the form checks this combination, too.
            for name, error in row.retry_errors(inherited_policy(handler_of(row))).items():
                self.add_error(name, error)

    def _check_params(self, row: Scheduler) -> None:
        widget = self.fields["params"].widget
        assert isinstance(widget, ParamsWidget)  # noqa: S101 - the widget of ParamsField
        if widget.form.handler is handler_of(row):
            mark_checked(row)
        elif found := params_problem(row):
            # The target's field accepts a primary key with a space, such as " 5". `params_form` does not accept this
            # key, so its form has no handler. Therefore the parameters are checked here.
            self.add_error("params", ValidationError(found, code="params"))


def wall(row: Scheduler, name: str = "date_time") -> datetime | None:
    """An instant of the row as naive local time. An invalid zone, which only plain SQL can write, counts as UTC."""
    found: datetime | None = getattr(row, name)
    if found is None:
        return None
    try:
        info = zone(row.zone_name)
    except ZoneError:
        return found.astimezone(UTC).replace(tzinfo=None)
    return found.astimezone(info).replace(tzinfo=None)
