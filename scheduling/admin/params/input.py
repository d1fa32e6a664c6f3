"""Describes the input of one parameter in a form. The input shows a value as text, and reads text back as a value.

An empty input means that no value is given. A run then gets the target's value, or else the params model's default.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from django import forms
from django.core.validators import MaxLengthValidator
from django.utils.translation import gettext as _

from scheduling.admin.params.json_field import PrettyJSONField, PrettyJSONWidget, pretty
from scheduling.core.json_bounds import is_storable

ABSENT: Any = object()
"""Stands for a missing value. None cannot stand for a missing value, because None is the JSON value null."""

LONGEST_TEXT = 100_000
_SHAPES = {"date": re.compile(r"\d{4}-\d\d-\d\d"), "time": re.compile(r"\d\d:\d\d(:\d\d)?")}
_NUMBERS = {"integer": (int,), "number": (int, float), "decimal": (int, float, str)}
"""Maps the kind of an input to the Python types that the input can show."""


class NumberField(forms.FloatField):
    """A form field for a finite number. Digits without a decimal point give an integer."""

    def to_python(self, value: Any) -> Any:
        text = str(value or "").strip()
        return int(text) if re.fullmatch(r"[+-]?\d{1,100}", text) else super().to_python(text)


class JSONValueField(PrettyJSONField):
    """A form field for any JSON value. An empty text gives ABSENT."""

    objects_only = False

    def to_python(self, value: Any) -> Any:
        return super().to_python(value) if str(value or "").strip() else ABSENT

    def prepare_value(self, value: Any) -> Any:
        """Leaves the text unchanged, because `Slot.show` has indented it already."""
        return value


class WordsField(JSONValueField):
    """A form field for a list of texts, one in each line. A text that begins with `[` is read as JSON."""

    def to_python(self, value: Any) -> Any:
        text = str(value or "")
        if text.lstrip().startswith("["):
            return super().to_python(text)
        words = [line for line in text.replace("\r\n", "\n").split("\n") if line.strip()]
        if any(not is_storable(word) for word in words):
            raise forms.ValidationError(_("Null characters are not allowed."), code="null_characters_not_allowed")
        return words or ABSENT


@dataclass(frozen=True)
class Slot:
    """Describes one parameter and its input.

    Args:
        name: the key of the parameter in the JSON object.
        kind: `text`, `lines`, `words` (a list of texts), `secret`, `integer`, `number`, `decimal`, `flag`, `choice`,
            `date`, `time` or `json`.
        required: whether the user must give a value, because neither the params model nor the target has one.
        default: a text with the value that is used if the input is empty.
        choices: for `flag` and `choice`, maps the JSON text of each value to its label.
        bounds: HTML attributes of the input that limit the value, such as `min` and `max`.
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
        """This slot if an input of its kind can show the value unchanged, otherwise a copy with another kind."""
        if isinstance(value, str):
            if self.kind in _SHAPES and not _SHAPES[self.kind].fullmatch(value):
                return replace(self, kind="text")
            if self.kind == "text" and "\n" in value:
                return replace(self, kind="lines")
        if self.kind == "words" and value is not None and value is not ABSENT and not _are_words(value):
            return replace(self, kind="json")
        return self

    def fits(self, value: Any) -> bool:
        """Whether the input can show the value and give it back unchanged."""
        if self.choices:
            return json_text(value) in self.choices
        if value is None or self.kind == "json":
            return True
        if self.kind == "words":
            return _are_words(value)
        if self.kind in _NUMBERS:
            return isinstance(value, _NUMBERS[self.kind]) and not isinstance(value, bool)
        breaks = "\r" if self.kind == "lines" else "\r\n"
        return isinstance(value, str) and is_storable(value) and not set(breaks) & set(value)

    def show(self, value: Any) -> str:
        """The text that the input shows for the value."""
        if value is ABSENT:
            return ""
        if self.choices:
            return json_text(value)
        if self.kind == "json":
            return pretty(value)
        if self.kind == "words" and value is not None:
            return "\n".join(value)
        return "" if value is None else str(value)

    def read(self, cleaned: Any) -> Any:
        """The value to store for a cleaned value of the form field; ABSENT if the input is empty."""
        if cleaned is ABSENT or cleaned is None or (isinstance(cleaned, str) and not cleaned):
            return ABSENT
        if self.choices:
            return json.loads(cleaned)
        return cleaned.replace("\r\n", "\n") if self.kind == "lines" else cleaned

    def field(self) -> forms.Field:
        """The Django form field. It only reads the text. The params model checks the value later."""
        more: dict[str, Any] = {"required": False, "label": self.label, "help_text": self.help}
        if self.choices:
            return forms.ChoiceField(choices=[("", self.default or "---------"), *self.choices.items()], **more)
        attrs = {"spellcheck": "false", **self.bounds}
        if self.default:
            attrs["placeholder"] = self.default
        if self.required:
            attrs["aria-required"] = "true"
        kind, own = _WIDGETS.get(self.kind, (forms.TextInput, {"class": "vTextField"}))
        more["widget"] = kind({**attrs, **own})
        if self.kind in _FIELDS:
            return _FIELDS[self.kind](**more)
        return forms.CharField(strip=False, validators=[MaxLengthValidator(LONGEST_TEXT)], **more)


_FIELDS: dict[str, type[forms.Field]] = {
    "integer": forms.IntegerField,
    "number": NumberField,
    "json": JSONValueField,
    "words": WordsField,
}
"""Maps a kind to its form field. All other kinds use a CharField."""

_WIDGETS: dict[str, tuple[type[forms.Widget], dict[str, Any]]] = {
    "integer": (forms.NumberInput, {"class": "sch-amount"}),
    "number": (forms.NumberInput, {"class": "sch-amount", "step": "any"}),
    "json": (PrettyJSONWidget, {}),
    "lines": (forms.Textarea, {"class": "vLargeTextField", "rows": 4}),
    "words": (forms.Textarea, {"class": "vLargeTextField", "rows": 4}),
    # This is not a password input. Browsers would offer to save the secret, or would fill in the operator's password.
    "secret": (forms.TextInput, {"class": "vTextField sch-secret", "autocomplete": "off"}),
    "date": (forms.TextInput, {"class": "sch-moment", "type": "date", "step": "1"}),
    "time": (forms.TextInput, {"class": "sch-moment", "type": "time", "step": "1"}),
}


def _are_words(value: Any) -> bool:
    """Whether the value is a list of texts that lines can show and give back."""
    return (
        isinstance(value, list)
        and all(isinstance(word, str) and word.strip() and not {"\r", "\n"} & set(word) for word in value)
        and all(map(is_storable, value))
        and not "".join(value[:1]).lstrip().startswith("[")
    )


def json_text(value: Any) -> str:
    """The value as JSON, on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)
