"""The Scheduler's form: every error is a sentence at its field, and nothing is written then."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from scheduling.admin.cron_input import CronInput
from scheduling.admin.params_field import ParamsField, ParamsWidget
from scheduling.admin.params_form import ParamsForm
from scheduling.admin.scheduler_panels import (
    RETRY_FIELDS,
    handler_behind,
    handler_of,
    inherited_hints,
    inherited_policy,
    params_problem,
)
from scheduling.admin.wall_clock import WallClockField
from scheduling.conf import get_conf
from scheduling.core.cron import ZoneError, resolve_wall, zone, zone_names
from scheduling.core.retry import DELAY_MS, MULTIPLIER, RetryPolicy, RetryPolicyInvalid
from scheduling.models import Scheduler
from scheduling.models.scheduler import TARGETS
from scheduling.targets import find_target

SWITCH = ("status", "pause_reason")
"""Changed by other buttons too, while somebody has this form open."""


class DatalistInput(forms.TextInput):
    """A text input that suggests values as one types; others may be typed too."""

    def __init__(self, options: Iterable[str], attrs: dict[str, Any] | None = None) -> None:
        super().__init__({"autocomplete": "off", "spellcheck": "false", **(attrs or {})})
        self.options = options

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        """The input, followed by its list."""
        list_id = f"{(attrs or {}).get('id') or name}_list"
        field = super().render(name, value, {**(attrs or {}), "list": list_id}, renderer)
        options = format_html_join("", '<option value="{}"></option>', ((option,) for option in sorted(self.options)))
        return format_html('{}<datalist id="{}">{}</datalist>', field, list_id, options)


class SchedulerForm(forms.ModelForm):
    """Add and edit. `former` holds the values that were stored, for the trail, `former_code` what they were for."""

    date_time = WallClockField(
        required=False,
        label=_("Date and time"),
        help_text=_("Instead of a schedule: runs once, at this time of its zone, then switches itself off."),
    )
    params = ParamsField(label=_("Parameters"))

    source: Scheduler | None = None
    """The schedule that a new one is a copy of."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        row: Scheduler = self.instance
        self.former = {**self.initial, "date_time": row.date_time}
        self.former_code = handler_of(row)
        if row.date_time is not None:
            self.initial["date_time"] = wall(row)
        # Somebody who may only look has a form without fields.
        if "schedule" in self.fields:
            self._dress(row)

    def _dress(self, row: Scheduler) -> None:
        widget = self.fields["params"].widget
        assert isinstance(widget, ParamsWidget)  # noqa: S101 - the field's own
        widget.form = params_form(self.source or row, self.data if self.is_bound else None)
        widget.form.told_elsewhere = True
        schedule, zone_field = self.fields["schedule"], self.fields["timezone"]
        schedule.widget, schedule.help_text = CronInput(), ""
        zone_field.widget = DatalistInput(zone_names(), {"class": "vTextField", "placeholder": get_conf().timezone})
        zone_field.help_text = _("An IANA name such as Europe/Madrid. Empty: %(zone)s.") % {"zone": get_conf().timezone}
        languages = [("", _("As the settings say")), *settings.LANGUAGES]
        if row.language and row.language not in dict(languages):
            languages.append((row.language, row.language))
        self.fields["language"] = forms.ChoiceField(
            choices=languages, required=False, label=capfirst(self.fields["language"].label or "")
        )
        for name in SWITCH:
            self.fields[name].show_hidden_initial = not self.is_bound or self.add_initial_prefix(name) in self.data
        self._dress_retry(row)

    def _dress_retry(self, row: Scheduler) -> None:
        hints = inherited_hints(inherited_policy(row)[0])
        for name in RETRY_FIELDS:
            self.fields[name].widget.attrs |= {"placeholder": hints[name], "class": "sch-amount"}
        bounds = {"retry_delay_ms": DELAY_MS, "retry_max_delay_ms": DELAY_MS, "retry_multiplier": MULTIPLIER}
        for name, (low, high) in bounds.items():
            self.fields[name].help_text = _("%(low)s to %(high)s. Empty: inherited.") % {"low": low, "high": high}
        self.fields["retry_jitter"].widget.choices = [
            ("unknown", hints["retry_jitter"]),
            ("true", _("On")),
            ("false", _("Off")),
        ]
        self.fields["retry_jitter"].help_text = _("Draws each wait from 50 to 100 % of its value.")

    def clean(self) -> dict[str, Any]:
        """Lay the schedule's zone on its date and time; leave the switch alone unless it was turned here."""
        data = super().clean() or self.cleaned_data
        for name in SWITCH:
            # An old form must not resume what was paused since.
            if self.instance.pk and self.fields[name].show_hidden_initial and name not in self.changed_data:
                data[name] = self.initial[name]
        local = data.get("date_time")
        if isinstance(local, datetime) and local.tzinfo is None:
            try:
                data["date_time"] = resolve_wall(local, data.get("timezone") or get_conf().timezone)
            except ZoneError:
                data["date_time"] = local.replace(tzinfo=UTC)  # the zone's own error is told at its field
            except ValueError as error:
                self.add_error("date_time", ValidationError(str(error), code="range"))
        return data

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]
        row: Scheduler = self.instance
        if "date_time" in self.errors and self.has_error("schedule", code="time"):
            # There is a date, only a wrong one: that neither is given would be one sentence too many.
            del self.errors["schedule"]
        if not {"params", *TARGETS} & set(self.errors) and (found := params_problem(row)):
            self.add_error("params", ValidationError(found, code="params"))
        if not {*RETRY_FIELDS, "retry_jitter", *TARGETS} & set(self.errors):
            # The model holds the policy against the settings; what counts is the target's own.
            self._check_policy(row, inherited_policy(row)[0])

    def _check_policy(self, row: Scheduler, base: RetryPolicy) -> None:
        try:
            row.retry_policy(base)
        except RetryPolicyInvalid as error:
            name = error.field if error.field == "max_retries" else f"retry_{error.field}"
            self.add_error(name, ValidationError(str(error), code=error.code))


def wall(row: Scheduler) -> datetime | None:
    """The row's instant as the clock of its zone shows it; a zone that plain SQL has spoilt counts as UTC."""
    if row.date_time is None:
        return None
    try:
        info = zone(row.zone_name)
    except ZoneError:
        return row.date_time.astimezone(UTC).replace(tzinfo=None)
    return row.date_time.astimezone(info).replace(tzinfo=None)


def params_form(row: Scheduler, data: Any = None) -> ParamsForm:
    """The parameters of a schedule for the target that is chosen: by what was posted, else by the row."""
    chosen = {name: data.get(name, "") if data is not None else getattr(row, f"{name}_id") for name in TARGETS}
    keys = [(name, int(str(key))) for name, key in chosen.items() if str(key or "").isdecimal() and len(str(key)) < 19]
    # Two targets are an error of their own, told at the field: then nobody knows whose parameters these are.
    type_, target = (keys[0][0], find_target(*keys[0])) if len(keys) == 1 else ("", None)
    return ParamsForm(
        handler_behind(type_, target),
        row.params,
        inherited=getattr(target, "params", None),
        stored_for=handler_of(row),
        data=data,
        url=reverse("admin:scheduling_scheduler_params", args=[row.pk or 0]),
    )
