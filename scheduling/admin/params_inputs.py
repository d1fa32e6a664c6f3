"""The two ways in which parameters are written: an input for each, or one JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy

from scheduling.admin.json_field import PrettyJSONField
from scheduling.admin.params_slot import ABSENT, Slot

NAME = "params"
"""Of the JSON object, and what the names of all else begin with."""


class Inputs(forms.Form):
    """An input for each slot, and one for names that the model does not know."""

    def __init__(self, found: list[Slot], values: Mapping[str, Any], data: Any = None) -> None:
        self.values = values
        self.slots = [slot.suited(values.get(slot.name)) for slot in found]
        known = {slot.name for slot in found}
        others = {name: value for name, value in values.items() if name not in known}
        initial = {slot.name: slot.show(values.get(slot.name, ABSENT)) for slot in self.slots}
        super().__init__(data, initial=initial)
        for slot in self.slots:
            made = self.fields[slot.name] = slot.field()
            made.widget.attrs["aria-describedby"] = f"id_{self.add_prefix(slot.name)}_helptext"
        self.others = f"{NAME}.other"
        self.fields[self.others] = PrettyJSONField(
            label=gettext_lazy("Other names"),
            help_text=gettext_lazy("Parameters that its code does not name, as a JSON object."),
        )
        self.initial[self.others] = others
        self.has_others = bool(others) or bool(data and data.get(self.others, "{}").strip() not in {"", "{}"})

    def add_prefix(self, field_name: str) -> str:
        """No parameter's name can meet that of another field of the page."""
        return field_name if field_name == f"{NAME}.other" else f"{NAME}.field.{field_name}"

    @property
    def fit(self) -> bool:
        """Whether every value can be shown by its input as it is."""
        return all(slot.fits(self.values[slot.name]) for slot in self.slots if slot.name in self.values)

    def read(self) -> dict[str, Any]:
        """What a valid form says. A text that stands as it was shown means the very value that was shown."""
        found: dict[str, Any] = {}
        for slot in self.slots:
            before = self.values.get(slot.name, ABSENT)
            posted = self.data.get(self.add_prefix(slot.name), "")
            same = posted.replace("\r\n", "\n") == self.initial[slot.name]
            value = before if same and slot.fits(before) else slot.read(self.cleaned_data[slot.name])
            if value is not ABSENT:
                found[slot.name] = value
        return {**found, **self.cleaned_data[self.others]}


class Text(forms.Form):
    """The JSON object."""

    params = PrettyJSONField(label=gettext_lazy("Parameters as JSON"))
