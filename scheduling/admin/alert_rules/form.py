"""The form of an alert rule. It has only the fields that the kind of the rule uses."""

from __future__ import annotations

import math
import re
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from scheduling.admin.alert_rules.words import COUNTS, LABELS, kind_of, shown
from scheduling.admin.common.own_rows import VisibleChannels
from scheduling.admin.common.time_span_field import TimeSpanField
from scheduling.core.alert_rules import KINDS, Bounds, RuleKind, Threshold
from scheduling.models import AlertRule

MOST_CHANNELS = 50

_CLOCK = re.compile(r"([01]\d|2[0-3]):[0-5]\d", re.ASCII)


class AlertRuleForm(VisibleChannels):
    """`fields_of` says which fields the page shows."""

    seconds = TimeSpanField(unit=1_000)
    kind: RuleKind | None = None
    """The kind of a new rule. The page sets it."""

    class Meta:
        model = AlertRule
        fields = ("name", "enabled", "severity", "number", "seconds", "schedule", "at", "group", "channels")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if not self.instance.pk and self.kind is not None:
            self.instance.kind = self.kind.value
            # The form starts with the value of the model, not with that of the kind.
            self.initial["severity"] = KINDS[self.kind].severity.value
        kind = kind_of(self.instance)
        if kind is None or not self.fields:  # a user who may only view gets a form without fields
            return
        for threshold, bounds in KINDS[kind].bounds.items():
            if (field := self.fields.get(threshold.value)) is not None:
                field.label, field.help_text = LABELS[kind], _help(bounds, threshold)
        if isinstance(self.initial.get("seconds"), float) and math.isfinite(self.initial["seconds"]):
            self.initial["seconds"] = round(self.initial["seconds"])
        self._dress(kind)

    def _dress(self, kind: RuleKind) -> None:
        hints = {
            "severity": _("Channels can leave out alerts that are less severe."),
            "channels": _("Only these are told. Without a choice, the channels that are told by default are."),
            "at": _("Such as 06:30, in the time zone of the schedule."),
            "group": _("Only the schedules and runs of this group count."),
            "schedule": _("Only this schedule counts. Without a choice, all do."),
        }
        if KINDS[kind].needs_schedule:
            hints["schedule"] = _("The schedule that has to be finished in time.")
            for name in ("schedule", "at"):
                if name in self.fields:
                    self.fields[name].required = True
            if "schedule" in self.fields:
                chooser: Any = self.fields["schedule"].widget
                chooser.widget.empty = _("Choose a schedule")
        for name, said in hints.items():
            if name in self.fields:
                self.fields[name].help_text = said
        if self.visible.is_limited and "group" in self.fields:
            self.fields["group"].required = True

    def clean_number(self) -> float | None:
        """The threshold. Raises an error with a sentence if it is out of bounds."""
        value: float | None = self.cleaned_data["number"]
        kind = kind_of(self.instance)
        if value is not None and kind in COUNTS and value != int(value):
            raise ValidationError(_("Enter a whole number."), code="whole")
        return self._bounded(value, Threshold.NUMBER)

    def clean_seconds(self) -> float | None:
        """The span. Raises an error with a sentence if it is out of bounds."""
        return self._bounded(self.cleaned_data["seconds"], Threshold.SECONDS)

    def _bounded(self, value: float | None, threshold: Threshold) -> float | None:
        kind = kind_of(self.instance)
        bounds = KINDS[kind].bounds.get(threshold) if kind is not None else None
        if value is not None and bounds is not None and not bounds.least <= value <= bounds.most:
            facts = {"least": shown(bounds.least, threshold), "most": shown(bounds.most, threshold)}
            raise ValidationError(_("Enter a value from %(least)s to %(most)s."), code="bounds", params=facts)
        return value

    def clean_at(self) -> str:
        """The time of the day. Raises an error if it is none."""
        text = str(self.cleaned_data["at"] or "").strip()
        if text and not _CLOCK.fullmatch(text):
            raise ValidationError(_("Enter a time such as 06:30."), code="time")
        return text

    def clean_channels(self) -> Any:
        channels = self.cleaned_data["channels"]
        if len(channels) > MOST_CHANNELS:
            raise ValidationError(_("At most %(count)d channels."), code="many", params={"count": MOST_CHANNELS})
        return channels

    def clean(self) -> dict[str, Any]:
        """Refuses a schedule without the group: the rule would find nothing."""
        data: dict[str, Any] = super().clean() or self.cleaned_data
        schedule, group = data.get("schedule"), data.get("group")
        if schedule is not None and group is not None and schedule.group_id != group.pk:
            said = _("This schedule does not belong to the user group below, so the rule would find nothing.")
            self.add_error("schedule", ValidationError(said, code="group"))
        return data


def fields_of(kind: RuleKind) -> tuple[str, ...]:
    """The fields that a kind uses."""
    facts = KINDS[kind]
    scope = ("schedule", "group") if facts.has_scope else ()
    at = ("at",) if facts.needs_schedule else ()
    return (
        "name",
        "enabled",
        "severity",
        *(one.value for one in facts.bounds),
        *scope[:1],
        *at,
        *scope[1:],
        "channels",
    )


def _help(bounds: Bounds, threshold: Threshold) -> str:
    facts = {
        "default": shown(bounds.default, threshold), "least": shown(bounds.least, threshold),
        "most": shown(bounds.most, threshold),
    }  # fmt: skip
    if threshold is Threshold.SECONDS:
        return _t("Such as 30s, 5m or 1h, from %(least)s to %(most)s. Empty: %(default)s.") % facts
    return _t("From %(least)s to %(most)s. Empty: %(default)s.") % facts
