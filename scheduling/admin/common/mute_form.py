"""The form that asks until when alerts are muted, and why."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone as clock
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from scheduling.admin.common.confirm import reason_field
from scheduling.core.alert_mutes import MORNING, MuteSpan, muted_until
from scheduling.models.alert_rule import REASON_LENGTH
from scheduling.operations.alerts import usable_end
from scheduling.operations.refused import Refused


class MuteForm(forms.Form):
    """Its result is `until`, an instant, and `reason`."""

    span = forms.ChoiceField(label=_("Muted"), initial=MuteSpan.HOUR.value)
    at = forms.DateTimeField(
        label=_("Until"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    reason = reason_field(REASON_LENGTH, _("Optional. Shown to your colleagues."), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        zone = {"zone": clock.get_current_timezone_name(), "time": f"{MORNING:%H:%M}"}
        chosen: Any = self.fields["span"]
        chosen.choices = [
            (MuteSpan.HOUR.value, _t("for 1 hour")),
            (MuteSpan.FOUR_HOURS.value, _t("for 4 hours")),
            (MuteSpan.TOMORROW.value, _t("until tomorrow, %(time)s (%(zone)s)") % zone),
            (MuteSpan.INSTANT.value, _t("until the time below")),
        ]
        self.fields["at"].help_text = _t("Only with “until the time below”. The time zone is %(zone)s.") % zone

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or self.cleaned_data
        if "span" in data and not self.errors:
            data["until"] = self._until(data)
        return data

    def _until(self, data: dict[str, Any]) -> datetime | None:
        span, now = MuteSpan(data["span"]), clock.now()
        if span is not MuteSpan.INSTANT:
            return muted_until(span, now, _info(clock.get_current_timezone()))
        until: datetime | None = data.get("at")
        if until is None:
            self.add_error("at", ValidationError(_("Enter the time until which it is muted."), code="required"))
            return None
        try:
            usable_end(until)
        except Refused as refused:
            self.add_error("at", ValidationError(refused.problems[0].message, code="until"))
        return until


def _info(zone: tzinfo) -> ZoneInfo:
    """The viewer's zone. A middleware of the project may have activated one that is no IANA zone."""
    return zone if isinstance(zone, ZoneInfo) else ZoneInfo("UTC")
