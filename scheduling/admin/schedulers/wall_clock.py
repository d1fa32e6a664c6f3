"""A form field for a local date and time."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _


class WallClockField(forms.SplitDateTimeField):
    """A local date and time without a zone. The form applies the schedule's zone later.

    Django's field would apply the site's zone, which may differ from the schedule's zone.
    """

    def __init__(self, **kwargs: Any) -> None:
        kwargs["widget"] = forms.SplitDateTimeWidget(
            date_attrs={"type": "date", "class": "sch-wall", "aria-label": str(_("Date"))},
            time_attrs={"type": "time", "class": "sch-wall", "step": "1", "aria-label": str(_("Time"))},
            date_format="%Y-%m-%d",
            time_format="%H:%M:%S",
        )
        super().__init__(**kwargs)

    def compress(self, data_list: Any) -> datetime | None:
        """Joins date and time into a naive datetime; None if both are empty."""
        if not data_list or not any(data_list):
            return None
        day, hour = data_list
        if not isinstance(day, date):
            raise ValidationError(_("Give a date beside the time."), code="invalid_date")
        if not isinstance(hour, time):
            raise ValidationError(_("Give a time beside the date."), code="invalid_time")
        return datetime.combine(day, hour)
