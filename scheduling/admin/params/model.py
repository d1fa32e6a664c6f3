"""Shows a handler's params model as a table. Uses the model to mask secrets and to check a target's default params."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterable
from dataclasses import is_dataclass
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, Union

from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import AliasChoices, AliasPath, BaseModel, Secret, SecretBytes, SecretStr
from pydantic.fields import FieldInfo

from scheduling.core.text import visible_text
from scheduling.handlers import Handler
from scheduling.handlers.params import ParamsInvalid, validate

MASK = "••••••"


def params_table(model: type[BaseModel]) -> SafeString:
    """The fields of the params model as an HTML table with the columns name, type, default and description."""
    rows = [
        (info.alias or name, type_text(info), _default(info), visible_text(info.description or "", 500))
        for name, info in model.model_fields.items()
    ]
    return render_to_string("admin/scheduling/params_table.html", {"rows": rows})


def _default(info: FieldInfo) -> SafeString:
    if info.is_required():
        return format_html("<em>{}</em>", _("required"))
    if _is_secret(info.annotation):
        return mark_safe(MASK)  # noqa: S308 - a constant
    if info.default_factory is not None:
        return format_html("<em>{}</em>", _("a new value each time"))
    return format_html("<code>{}</code>", visible_text(_literal(info.default), 120))


def type_text(info: FieldInfo) -> str:
    """A field's type and bounds in words: `whole number, 1 to 10,000` or `one of "eu", "us"`."""
    text = _annotation(info.annotation)
    found = {name: getattr(rule, name) for rule in info.metadata for name in _BOUNDS if hasattr(rule, name)}
    bounds = {name: _grouped(value) for name, value in found.items() if value is not None}
    words = []
    if "ge" in bounds and "le" in bounds:
        words.append(_("%(least)s to %(most)s") % {"least": bounds.pop("ge"), "most": bounds.pop("le")})
    words += [str(_BOUNDS[name]) % {"value": value} for name, value in bounds.items()]
    return ", ".join([text, *words])


def _grouped(value: object) -> object:
    """A whole number with commas between its thousands; any other value as it is."""
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**18
    return f"{value:,}" if whole else value


_BOUNDS = {
    "ge": gettext_lazy("at least %(value)s"),
    "gt": gettext_lazy("above %(value)s"),
    "le": gettext_lazy("at most %(value)s"),
    "lt": gettext_lazy("below %(value)s"),
    "min_length": gettext_lazy("at least %(value)s characters"),
    "max_length": gettext_lazy("at most %(value)s characters"),
    "multiple_of": gettext_lazy("a multiple of %(value)s"),
    "pattern": gettext_lazy("like %(value)s"),
}

_NAMES = {
    int: gettext_lazy("whole number"),
    str: gettext_lazy("text"),
    bool: gettext_lazy("true or false"),
    float: gettext_lazy("number"),
    Decimal: gettext_lazy("decimal number"),
    date: gettext_lazy("date"),
    time: gettext_lazy("time"),
    datetime: gettext_lazy("date and time, such as 2026-03-10T12:00:00+01:00"),
    SecretStr: gettext_lazy("secret"),
    SecretBytes: gettext_lazy("secret"),
    dict: gettext_lazy("object"),
    list: gettext_lazy("list"),
}


def _annotation(annotation: Any) -> str:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _annotation(arguments[0])
    if origin is Literal:
        return _one_of(arguments)
    if origin in (Union, types.UnionType):
        return _(" or ").join("null" if argument is type(None) else _annotation(argument) for argument in arguments)
    if origin in (list, tuple, set, frozenset) and arguments:
        return _("list of %(what)s") % {"what": _annotation(arguments[0])}
    if origin is dict and len(arguments) == 2:
        return _("object of %(what)s") % {"what": _annotation(arguments[1])}
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _one_of([member.value for member in annotation])
    return str(_NAMES.get(annotation) or getattr(annotation, "__name__", annotation))


def _one_of(values: Iterable[Any]) -> str:
    return _("one of %(values)s") % {"values": ", ".join(_literal(value) for value in values)}


def _literal(value: Any) -> str:
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(value.value if isinstance(value, Enum) else value, ensure_ascii=False, default=str)


def _is_secret(annotation: Any, met: frozenset[Any] = frozenset()) -> bool:
    """Whether a value of this type may contain a secret at any depth. Pages hide such a value completely."""
    annotation = getattr(annotation, "__value__", annotation)  # the type behind a type alias
    if not isinstance(annotation, type):
        parts = (typing.get_origin(annotation), *typing.get_args(annotation))
        return any(_is_secret(part, met) for part in parts if part is not None)
    if annotation in met:  # the type contains itself
        return False
    return issubclass(annotation, (SecretStr, SecretBytes, Secret)) or any(
        _is_secret(inner, met | {annotation}) for inner in _inside(annotation)
    )


def _inside(kind: type) -> list[Any]:
    """The field types of a pydantic model, dataclass, TypedDict or NamedTuple; empty for any other type."""
    if issubclass(kind, BaseModel):
        return [info.annotation for info in kind.model_fields.values()]
    if not (is_dataclass(kind) or hasattr(kind, "__total__") or hasattr(kind, "_fields")):  # a TypedDict, a NamedTuple
        return []
    try:
        return list(typing.get_type_hints(kind).values())
    except (NameError, TypeError):
        return [SecretStr]  # the field types are unknown, and one of them may be a secret


def keys_of(name: str, info: FieldInfo) -> set[str]:
    """The names under which a JSON object may hold the value of this field: the field's name and aliases."""
    found = {name}
    for alias in (info.alias, info.validation_alias):
        if isinstance(alias, AliasPath | AliasChoices):
            paths = alias.choices if isinstance(alias, AliasChoices) else [alias]
            found |= {path if isinstance(path, str) else str(path.path[0]) for path in paths}
        elif alias is not None:
            found.add(alias)
    return found


def secret_names(handler: Handler | None) -> set[str]:
    """The names and aliases of the handler's parameters whose values may contain a secret."""
    if handler is None:
        return set()
    return {
        known
        for name, info in handler.params.model_fields.items()
        if _is_secret(info.annotation)
        for known in keys_of(name, info)
    }


def masked(handler: Handler | None, params: Any) -> Any:
    """The params, in which the values of secret parameters are replaced by `MASK`. Empty values stay empty."""
    if handler is None or not isinstance(params, dict):
        return params
    secret = secret_names(handler)
    return {name: MASK if name in secret and value not in (None, "") else value for name, value in params.items()}


def default_problems(handler: Handler, params: dict[str, Any]) -> list[str]:
    """Sentences that say why a target's default params do not fit the handler's params model; empty if they fit.

    A required parameter may be missing in the target, because each Scheduler can still give a value.
    """
    try:
        validate(handler, params)
    except ParamsInvalid as error:
        absent = {
            info.alias or name
            for name, info in handler.params.model_fields.items()
            if info.is_required() and not keys_of(name, info) & set(params)
        }
        return [f"{name}: {text}" if name else text for name, text in error.errors.items() if name not in absent]
    return []
