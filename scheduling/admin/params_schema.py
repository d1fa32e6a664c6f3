"""The inputs of a params model, read off its JSON schema.

What has no input of its own (lists, objects, unions) is written as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from scheduling.admin.params_model import MASK, keys_of, secret_names, type_text
from scheduling.admin.params_slot import Slot, json_text
from scheduling.admin.text import shown
from scheduling.registry import Handler

DEFAULT_LIMIT = 60
"""Characters of an inherited value, as a placeholder."""

_SCALARS = (str, int, float, bool, type(None))


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
    return {key: info for name, info in model.model_fields.items() for key in keys_of(name, info)}


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
        options = {json_text(each): shown("null" if each is None else each, 100) for each in values}
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
    said = value if isinstance(value, str) and value else json_text(value)
    return text % {"value": MASK if secret else shown(said, DEFAULT_LIMIT)}
