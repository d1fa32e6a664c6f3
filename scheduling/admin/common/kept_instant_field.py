"""A form field for the date and time of a stored row."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django import forms
from django.utils import timezone as clock


class KeptInstantField(forms.SplitDateTimeField):
    """A date and time in the site's zone. If it still shows the stored instant, the result is the stored instant.

    Django's field refuses each time that the clocks show twice. So a form with such a time could not be saved, even if
    the user has changed another field only.
    """

    stored: datetime | None = None
    """What the row has, which the form shows to the second. The form sets it."""

    def compress(self, data_list: Any) -> datetime | None:
        if self.stored is not None and data_list and all(data_list):
            shown = clock.localtime(self.stored).replace(tzinfo=None, fold=0, microsecond=0)
            if datetime.combine(*data_list) == shown:
                return self.stored
        found: datetime | None = super().compress(data_list)
        return found
