"""The input of one parameter: what a value looks like in it, and what was written in it says.

An input that is left empty says nothing: the value is then the target's own or the model's default.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator
from django.utils.translation import gettext_lazy

from scheduling.admin.json_field import PrettyJSONField, PrettyJSONWidget, pretty
from scheduling.admin.text import is_storable

ABSENT: Any = object()
"""No value is given."""

LONGEST_NUMBER = 100
LONGEST_TEXT = 100_000
_SHAPES = {"date": re.compile(r"\d{4}-\d\d-\d\d"), "time": re.compile(r"\d\d:\d\d(:\d\d)?")}


class NumberField(forms.Field):
    """A finite number; one without a point stays an integer."""

    default_error_messages = {"invalid": gettext_lazy("Enter a number.")}

    def to_python(self, value: Any) -> int | float | None:
        """The number, or None for nothing."""
        text = str(value or "").strip()
        if not text:
            return None
        try:
            number = int(text) if re.fullmatch(r"[+-]?\d+", text[: LONGEST_NUMBER + 1]) else float(text)
        except ValueError:
            number = math.nan
        if len(text) > LONGEST_NUMBER or not math.isfinite(number):
            raise ValidationError(self.error_messages["invalid"], code="invalid")
        return number


class JSONValueField(PrettyJSONField):
    """Any JSON value; empty is no value."""

    objects_only = False

    def to_python(self, value: Any) -> Any:
        """The value, or ABSENT."""
        return super().to_python(value) if str(value or "").strip() else ABSENT

    def prepare_value(self, value: Any) -> Any:
        """The text as it is: a slot has made it."""
        return value


@dataclass(frozen=True)
class Slot:
    """One parameter and its input.

    Args:
        name: its key in the JSON object.
        kind: `text`, `lines`, `secret`, `integer`, `number`, `decimal`, `flag`, `choice`, `date`, `time` or `json`.
        required: neither the model nor the target gives a value.
        default: what an empty input leads to, as text.
        choices: by the JSON text of each value, the word for it.
        bounds: attributes of the input.
    """

    name: str
    label: str
    kind: str
    required: bool = False
    help: str = ""
    hint: str = ""
    default: str = ""
    choices: Mapping[str, str] = field(default_factory=dict)
    bounds: Mapping[str, Any] = field(default_factory=dict)

    def suited(self, value: Any) -> Slot:
        """This slot, or one with an input that can show the value as it is."""
        if isinstance(value, str):
            if self.kind in _SHAPES and not _SHAPES[self.kind].fullmatch(value):
                return replace(self, kind="text")
            if self.kind == "text" and "\n" in value:
                return replace(self, kind="lines")
        return self

    def fits(self, value: Any) -> bool:
        """Whether the input can show the value and give it back unchanged."""
        match self.kind:
            case "text" | "lines" | "secret" | "date" | "time":
                breaks = "\r" if self.kind == "lines" else "\r\n"
                plain = isinstance(value, str) and is_storable(value) and not set(breaks) & set(value)
                return value is None or plain
            case "integer":
                return value is None or (isinstance(value, int) and not isinstance(value, bool))
            case "number":
                return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
            case "decimal":
                return value is None or (isinstance(value, int | float | str) and not isinstance(value, bool))
            case "flag" | "choice":
                return json_text(value) in self.choices
        return True

    def show(self, value: Any) -> str:
        """The value as the input holds it."""
        if value is ABSENT:
            return ""
        if self.kind in {"flag", "choice"}:
            return json_text(value)
        if self.kind == "json":
            return pretty(value)
        return "" if value is None else str(value)

    def read(self, cleaned: Any) -> Any:
        """What was written, as it is stored; ABSENT for nothing."""
        if cleaned is ABSENT or cleaned is None or (isinstance(cleaned, str) and not cleaned):
            return ABSENT
        if self.kind in {"flag", "choice"}:
            return json.loads(cleaned)
        return cleaned.replace("\r\n", "\n") if self.kind == "lines" else cleaned

    def field(self) -> forms.Field:
        """The form's field. It only reads: what fits is for the model to say, in one place and in its own words."""
        more: dict[str, Any] = {"required": False, "label": self.label, "help_text": self.help}
        place = {"placeholder": self.default} if self.default else {}
        own = {"spellcheck": "false", **self.bounds, **place}
        if self.required:
            own["aria-required"] = "true"
        match self.kind:
            case "flag" | "choice":
                empty = ("", self.default or "---------")
                return forms.ChoiceField(choices=[empty, *self.choices.items()], **more)
            case "integer":
                return forms.IntegerField(widget=forms.NumberInput({"class": "sch-amount", **own}), **more)
            case "number":
                step = {"step": "any", **own}
                return NumberField(widget=forms.NumberInput({"class": "sch-amount", **step}), **more)
            case "json":
                return JSONValueField(widget=PrettyJSONWidget(own), **more)
            case "lines":
                widget: forms.Widget = forms.Textarea({"class": "vLargeTextField", "rows": 4, **own})
            case "secret":
                # No password input: browsers would offer to keep it, and to fill in the operator's own.
                widget = forms.TextInput({"class": "vTextField sch-secret", "autocomplete": "off", **own})
            case "date" | "time":
                widget = forms.TextInput({"class": "sch-moment", **own, "type": self.kind, "step": "1"})
            case _:
                widget = forms.TextInput({"class": "vTextField", **own})
        return forms.CharField(widget=widget, strip=False, validators=[MaxLengthValidator(LONGEST_TEXT)], **more)


def json_text(value: Any) -> str:
    """The value as JSON, on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)
