"""Reads the parameters that a user posted in a form.

The form has one input for each parameter, and a box. The box is a text area with all parameters as one JSON object.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy

from scheduling.admin.params.input import ABSENT, Slot
from scheduling.admin.params.json_field import PrettyJSONField

NAME = "params"
"""The posted name of the box. The posted names of all other fields begin with this name."""

BASE = f"{NAME}.was"
"""The name of a hidden field. The field holds the text with which the box was rendered."""

BOTH_EDITED = gettext_lazy(
    "Both the inputs and this text were edited. Send the form again to use this text, or empty it to use the inputs."
)


class Inputs(forms.Form):
    """One input for each parameter of the handler. Parameters without an input are kept in `others`."""

    def __init__(self, found: list[Slot], values: Mapping[str, Any], data: Any = None) -> None:
        self.values = values
        self.slots = [slot.suited(values.get(slot.name)) for slot in found]
        known = {slot.name for slot in found}
        self.others = {name: value for name, value in values.items() if name not in known}
        super().__init__(data, initial={slot.name: slot.show(values.get(slot.name, ABSENT)) for slot in self.slots})
        for slot in self.slots:
            made = self.fields[slot.name] = slot.field()
            made.widget.attrs["aria-describedby"] = f"id_{self.add_prefix(slot.name)}_helptext"

    def add_prefix(self, field_name: str) -> str:
        """Adds a prefix, because another field on the page may have the same name as a parameter."""
        return f"{NAME}.field.{field_name}"

    @property
    def fit(self) -> bool:
        """Whether each input can show its value unchanged."""
        return all(slot.fits(self.values[slot.name]) for slot in self.slots if slot.name in self.values)

    @property
    def edited(self) -> bool:
        """Whether the posted values differ from the values with which the page was rendered."""
        return PrettyJSONField().has_changed(self.values, self.read())

    def read_for(self, names: Container[str]) -> dict[str, Any]:
        """The parameters of a valid form, without the inputs for which the present handler has no parameter.

        A form has such inputs if it was posted for another handler.

        Args:
            names: the names of the present handler's parameters.
        """
        return {name: value for name, value in self.read().items() if name in names or name in self.others}

    def read(self) -> dict[str, Any]:
        """The parameters of a valid form. If the text of an input was not edited, its old value is kept."""
        found: dict[str, Any] = {}
        for slot in self.slots:
            before = self.values.get(slot.name, ABSENT)
            posted = self.data.get(self.add_prefix(slot.name), "")
            same = posted.replace("\r\n", "\n") == self.initial[slot.name]
            value = before if same and slot.fits(before) else slot.read(self.cleaned_data[slot.name])
            if value is not ABSENT:
                found[slot.name] = value
        return {**found, **self.others}


class Posted:
    """Reads posted parameters: the inputs together with the box, or the box alone.

    Args:
        found: the descriptions of the posted inputs; None if no inputs were posted.
        names: the names of the present handler's parameters. The inputs may have been posted for another handler.
    """

    def __init__(self, data: Any, found: list[Slot] | None, names: Container[str]) -> None:
        self.written: dict[str, Any] | None = None
        """The parameters that were read; None if they are refused."""
        self.shown: dict[str, Any] | None = None
        """The parameters that the next page shows; None if the next page shows the posted inputs again."""
        self.errors: dict[str, str] = {}
        """Maps the name of a wrong parameter to a sentence. The name '' is for all parameters together."""
        self.text, self.base = data.get(NAME, ""), data.get(BASE, "")
        before = _parsed(self.base)
        before = before if isinstance(before, dict) else {}
        self.inputs = Inputs(found, before, data) if found is not None else None
        self.edited = bool(self.text.strip()) and PrettyJSONField().has_changed(before, self.text)
        """Whether the text of the box was edited."""
        self.by_box = False
        """Whether the parameters were read from the box."""
        if self.inputs is None or (self.edited and self.inputs.is_valid()):
            self._read_box(names)
        elif self.inputs.is_valid():
            self.written = self.shown = self.inputs.read_for(names)
        else:
            self.errors = {name: " ".join(map(str, texts)) for name, texts in self.inputs.errors.items()}

    def _read_box(self, names: Container[str]) -> None:
        self.by_box, boxed = True, _parsed(self.text)
        if not isinstance(boxed, dict):
            self.errors[""] = boxed
        elif self.inputs is not None and self.inputs.edited:
            self.shown, self.errors[""] = self.inputs.read_for(names), str(BOTH_EDITED)
        else:
            self.written = self.shown = boxed


def _parsed(text: str) -> dict[str, Any] | str:
    """The JSON object, or a sentence that says why the text is refused."""
    try:
        found: dict[str, Any] = PrettyJSONField().clean(text)
    except ValidationError as error:
        return " ".join(error.messages)
    return found
