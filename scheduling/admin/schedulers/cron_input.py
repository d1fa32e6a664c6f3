"""The input of a cron expression or an interval, with presets, a builder of intervals and a legend of the dialect."""

from __future__ import annotations

from typing import Any

from django import forms
from django.template.loader import render_to_string
from django.utils.dates import WEEKDAYS_ABBR
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext_lazy as _

from scheduling.conf import get_conf
from scheduling.core.dialect import MAX_LENGTH
from scheduling.core.interval_dialect import WEEKDAYS

TEMPLATE = "admin/scheduling/scheduler/cron_input.html"

PRESETS = (
    ("* * * * *", _("Every minute")),
    ("*/15 * * * *", _("Every 15 minutes")),
    ("0 * * * *", _("Hourly")),
    ("0 8 * * *", _("Daily at 8:00")),
    ("0 8 * * 1-5", _("Weekdays at 8:00")),
    ("0 8 * * 1", _("Mondays at 8:00")),
    ("0 8 1 * *", _("First of the month at 8:00")),
    ("0 8 L * *", _("Last of the month at 8:00")),
    ("@every 90m", _("Every 90 minutes")),
    ("@every 2w on fri at 08:00", _("Every second Friday at 8:00")),
)

PARTS = (
    (_("minute"), "0-59", ""),
    (_("hour"), "0-23", ""),
    (_("day of month"), "1-31", _("L is the last day")),
    (_("month"), "1-12", "jan-dec"),
    (_("weekday"), "0-7", _("sun-sat; 0 and 7 are Sunday; 1#2 is the second Monday")),
)

FORMS = (
    ("*", _("each")),
    ("5", _("this one")),
    ("1,15", _("these")),
    ("9-17", _("from 9 to 17, both included")),
    ("*/10", _("every tenth, from the first")),
    ("9-17/2", _("every other one from 9 to 17")),
    ("@daily", _("an alias, in place of all five: @hourly, @daily, @weekly, @monthly, @yearly")),
)

INTERVALS = (
    ("@every 90m", _("each 90 minutes of real time, counted from 2001-01-01 00:00 UTC")),
    ("@every 1h30m from 2026-01-05T08:00Z", _("the same, counted from this instant; the offset may be +01:00, too")),
    ("@every 3d at 08:00 from 2026-01-05", _("each third day in the time zone of the schedule, from this day on")),
    ("@every 2w on mon,fri at 08:00", _("Monday and Friday of each second week; the first one begins on 2001-01-01")),
)

UNITS = (("m", _("minutes")), ("h", _("hours")), ("d", _("days")), ("w", _("weeks")))
SECONDS = ("s", _("seconds"))


class CronInput(forms.TextInput):
    """A text input with preset buttons, a builder of intervals and a folded legend. Only the legend needs no script."""

    def __init__(self) -> None:
        super().__init__(
            {
                "class": "sch-cron vTextField",
                "placeholder": "0 8 * * 1-5",
                "spellcheck": "false",
                "autocomplete": "off",
                "autocapitalize": "off",
                "maxlength": MAX_LENGTH,
            }
        )

    def render(self, name: str, value: Any, attrs: Any = None, renderer: Any = None) -> SafeString:
        context = {
            "field": super().render(name, value, attrs, renderer),
            "id": (attrs or {}).get("id") or name,
            "presets": PRESETS,
            "parts": PARTS,
            "forms": FORMS,
            "intervals": INTERVALS,
            "units": (SECONDS, *UNITS) if get_conf().seconds else UNITS,
            "weekdays": [(day, WEEKDAYS_ABBR[number]) for number, day in enumerate(WEEKDAYS)],
        }
        return mark_safe(render_to_string(TEMPLATE, context))  # noqa: S308 - escaped by the template
