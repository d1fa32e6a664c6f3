"""The inputs of a params model: a field of the model, as its JSON schema has it, and what a person writes for it.

An input that is left empty says nothing: the value is then the target's own or the model's default. What has no
input of its own (lists, objects, unions) is written as JSON.
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
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from scheduling.admin.json_field import PrettyJSONField, PrettyJSONWidget, pretty
from scheduling.admin.params_model import MASK, secret_names, type_text
from scheduling.admin.text import is_storable, shown
from scheduling.registry import Handler

ABSENT: Any = object()
"""No value is given."""

LONGEST_NUMBER = 100
LONGEST_TEXT = 100_000
DEFAULT_LIMIT = 60
"""Characters of an inherited value, as a placeholder."""

_SHAPES = {"date": re.compile(r"\d{4}-\d\d-\d\d"), "time": re.compile(r"\d\d:\d\d(:\d\d)?")}
_SCALARS = (str, int, float, bool, type(None))


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
                return _json(value) in self.choices
        return True

    def show(self, value: Any) -> str:
        """The value as the input holds it."""
        if value is ABSENT:
            return ""
        if self.kind in {"flag", "choice"}:
            return _json(value)
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


def slots(handler: Handler, inherited: Mapping[str, Any] | None = None) -> list[Slot] | None:
    """The inputs of the handler's model in its order; None when its parameters can only be written as JSON.

    Args:
        inherited: the target's own parameters.
    """
    try:
        schema = handler.params.model_json_schema()
    except Exception:
        # pydantic has many ways to say that a type has no schema, and a page must not break for any of them.
        return None
    properties = schema.get("properties", {})
    if schema.get("type") != "object" or not isinstance(properties, dict):
        return None
    secret, fields = secret_names(handler), _fields(handler.params)
    found, given, required = [], inherited or {}, set(schema.get("required", ()))
    for name, own in properties.items():
        part, nullable = _resolved(own, schema.get("$defs", {}))
        kind, choices = _kind(part, nullable)
        if name in secret and kind in {"text", "json"}:
            kind = "secret" if kind == "text" else "json"
        default = _default(name, own, given, required, name in secret)
        label = str(own.get("title") or name)
        found.append(
            Slot(
                name=name,
                # The model's own words; else the name, for the trail, the errors and the code say that one.
                label=name if label == name.title().replace("_", " ").strip() else label,
                kind=kind,
                required=name in required and name not in given,
                help=shown(own.get("description") or part.get("description") or "", 1_000),
                hint=type_text(fields[name]) if name in fields else "",
                default=default,
                choices=choices,
                bounds=_bounds(part, kind),
            )
        )
    return found


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    return {
        str(known): info
        for name, info in model.model_fields.items()
        for known in (name, info.alias, info.validation_alias)
        if isinstance(known, str)
    }


def _resolved(part: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The part of the schema that says what the value is, and whether null will do as well."""
    nullable = False
    for _step in range(20):
        if "$ref" in part:
            part = {
                **known.get(str(part["$ref"]).rpartition("/")[2], {}),
                **{k: v for k, v in part.items() if k != "$ref"},
            }
        elif len(part.get("allOf", ())) == 1:
            part = {**part["allOf"][0], **{k: v for k, v in part.items() if k != "allOf"}}
        elif options := part.get("anyOf"):
            real = [each for each in options if each.get("type") != "null"]
            nullable = nullable or len(real) < len(options)
            if len(real) != 1:
                break
            part = {**{k: v for k, v in part.items() if k != "anyOf"}, **real[0]}
        else:
            break
    return dict(part), nullable


def _kind(part: Mapping[str, Any], nullable: bool) -> tuple[str, dict[str, str]]:
    values = part.get("enum", [part["const"]] if "const" in part else None)
    if values is not None and all(isinstance(each, _SCALARS) for each in values):
        options = {_json(each): shown("null" if each is None else each, 100) for each in values}
        return "choice", {**options, **({"null": "null"} if nullable else {})}
    type_ = part.get("type")
    if type_ == "boolean":
        words = {"true": _("Yes"), "false": _("No")}
        return "flag", {**words, **({"null": "null"} if nullable else {})}
    if {each.get("type") for each in part.get("anyOf", ())} - {"null"} == {"number", "string"}:
        return "decimal", {}
    if type_ in {"integer", "number"}:
        return str(type_), {}
    if type_ == "string":
        format_ = part.get("format", "")
        kinds = {"date": "date", "time": "time", "textarea": "lines", "multiline": "lines", "binary": "json"}
        return kinds.get(format_, "text"), {}
    return "json", {}


def _bounds(part: Mapping[str, Any], kind: str) -> dict[str, Any]:
    names: dict[str, str] = {}
    if kind in {"integer", "number"}:
        names = {"minimum": "min", "maximum": "max"}
    elif kind in {"text", "lines"}:
        names = {"maxLength": "maxlength"}
    return {attribute: part[name] for name, attribute in names.items() if isinstance(part.get(name), int | float)}


def _default(name: str, own: Mapping[str, Any], given: Mapping[str, Any], required: set[str], secret: bool) -> str:
    if name not in given and (name in required or "default" not in own):
        return ""
    text = _("the target's: %(value)s") if name in given else _("default: %(value)s")
    value = given[name] if name in given else own["default"]
    said = value if isinstance(value, str) and value else _json(value)
    return text % {"value": MASK if secret else shown(said, DEFAULT_LIMIT)}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
