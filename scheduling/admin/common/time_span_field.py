"""A form field for a length of time, which the database stores as a whole number of milliseconds or seconds."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.core.time_spans import TimeSpanError, parse_time_span, spell_time_span

RETRY_LABELS = {
    "retry_delay_ms": gettext_lazy("First retry delay"),
    "retry_max_delay_ms": gettext_lazy("Longest retry delay"),
}
"""The labels of the retry policy's lengths of time. The labels of the model name the unit of the column."""


class TimeSpanField(forms.CharField):
    """Takes texts such as `30s`, `5m` and `1h`. The value is a number; None if the field is empty.

    Args:
        unit: how many milliseconds one unit of the value has.
    """

    def __init__(self, *, unit: int = 1, **kwargs: Any) -> None:
        self.unit = unit
        super().__init__(required=False, widget=forms.TextInput({"class": "sch-amount"}), **kwargs)

    def prepare_value(self, value: Any) -> Any:
        """The text of a stored number. A text that was typed stays as it is."""
        return spell_time_span(value * self.unit) if isinstance(value, int) and value >= 0 else value

    def to_python(self, value: Any) -> Any:
        text = super().to_python(value)
        if not text:
            return None
        try:
            milliseconds = parse_time_span(text)
        except TimeSpanError as error:
            raise ValidationError(str(error), code="time_span") from None
        if milliseconds % self.unit:
            raise ValidationError(_("Give whole seconds."), code="time_span")
        return milliseconds // self.unit

    def has_changed(self, initial: Any, data: Any) -> bool:
        try:
            return bool(self.to_python(data) != initial)
        except ValidationError:
            return True
