"""A date and a time in a form, as a clock on the wall shows them."""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _


class WallClockField(forms.SplitDateTimeField):
    """A date and a time as a clock on the wall shows them, without a zone: the schedule's own zone is laid on later.

    Django's field would take them for the site's zone, which is not where the schedule lives.
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
        """Both parts as a naive datetime."""
        if not data_list or not any(data_list):
            return None
        day, hour = data_list
        if not isinstance(day, date):
            raise ValidationError(_("Give a date beside the time."), code="invalid_date")
        if not isinstance(hour, time):
            raise ValidationError(_("Give a time beside the date."), code="invalid_time")
        return datetime.combine(day, hour)
