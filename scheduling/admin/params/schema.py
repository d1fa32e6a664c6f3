"""Makes the form inputs for a params model from the model's JSON schema.

A list of texts has a text area with one text in each line. An input for any other list, an object or a union is a text
area, in which users write JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from scheduling.admin.params.input import Slot, json_text
from scheduling.admin.params.model import type_text
from scheduling.core.text import visible_text
from scheduling.handlers import Handler
from scheduling.handlers.params_model import keys_of
from scheduling.handlers.secret_params import MASK, secret_names

DEFAULT_LIMIT = 60
"""A placeholder shows at most this many characters of a default value, because inputs are narrow."""

_SCALARS = (str, int, float, bool, type(None))


def slots(handler: Handler, inherited: Mapping[str, Any] | None = None) -> list[Slot] | None:
    """The inputs for the fields of the handler's params model, in the order of the fields.

    The result is None if the params model has no JSON schema, or if the schema does not describe an object. Then users
    write all parameters as one JSON object.

    Args:
        inherited: the target's own parameters.
    """
    try:
        schema = handler.params.model_json_schema()
    except Exception:
        # pydantic raises many kinds of errors for a type without a schema. No such error may break the page.
        return None
    properties = schema.get("properties", {})
    if schema.get("type") != "object" or not isinstance(properties, dict):
        return None
    if not properties and schema.get("additionalProperties") is True:
        return None  # the model takes any parameters and names none, as that of reminders
    secret, fields = secret_names(handler), _fields(handler.params)
    given, required = inherited or {}, set(schema.get("required", ()))
    found = []
    for name, own in properties.items():
        part, nullable = _resolved(own, schema.get("$defs", {}))
        kind, choices = _kind(part, nullable)
        if kind == "words" and name in secret:
            kind = "json"
        title = str(own.get("title") or name)
        slot = Slot(
            name=name,
            # If pydantic derived the title from the name, the label is the name, because audit entries and errors also
            # show the name.
            label=name if title == name.title().replace("_", " ").strip() else title,
            kind="secret" if name in secret and kind == "text" else kind,
            required=name in required and name not in given,
            help=visible_text(own.get("description") or part.get("description") or "", 1_000),
            hint=type_text(fields[name]) if name in fields else "",
            default=_default(name, own, given, required, name in secret),
            choices=choices,
            bounds=_bounds(part, kind),
        )
        found.append(slot)
    return found


def _fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    return {key: info for name, info in model.model_fields.items() for key in keys_of(name, info)}


def _resolved(part: Mapping[str, Any], known: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Returns the part of the schema that describes the value, and whether the value may be null."""
    found = dict(part)
    if "$ref" in found:
        name = str(found.pop("$ref")).rpartition("/")[2]
        return _resolved({**known.get(name, {}), **found}, known)
    options = found.get("anyOf", ())
    real = [option for option in options if option.get("type") != "null"]
    nullable = len(real) < len(options)
    if len(real) == 1:
        del found["anyOf"]
        found, inner = _resolved({**found, **real[0]}, known)
        nullable = nullable or inner
    return found, nullable


def _kind(part: Mapping[str, Any], nullable: bool) -> tuple[str, dict[str, str]]:
    values = part.get("enum", [part["const"]] if "const" in part else None)
    if values is not None and all(isinstance(value, _SCALARS) for value in values):
        options = {json_text(value): visible_text("null" if value is None else value, 100) for value in values}
        return "choice", {**options, **({"null": "null"} if nullable else {})}
    type_ = part.get("type")
    if type_ == "boolean":
        words = {"true": _("Yes"), "false": _("No")}
        return "flag", {**words, **({"null": "null"} if nullable else {})}
    if {option.get("type") for option in part.get("anyOf", ())} - {"null"} == {"number", "string"}:
        return "decimal", {}
    if type_ in {"integer", "number"}:
        return str(type_), {}
    if type_ == "string":
        format_ = part.get("format", "")
        kinds = {"date": "date", "time": "time", "textarea": "lines", "multiline": "lines", "binary": "json"}
        return kinds.get(format_, "text"), {}
    if type_ == "array" and {"type": "string"}.items() <= dict(part.get("items") or {}).items():
        return "json" if {"enum", "format", "const"} & set(part["items"]) else "words", {}
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
    said = value if isinstance(value, str) and value else json_text(value)
    return text % {"value": MASK if secret else visible_text(said, DEFAULT_LIMIT)}
