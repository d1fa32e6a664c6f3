"""Shows a handler's params model as a table, and checks a target's default params against the model."""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterable
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any, Literal, Union

from django.template.loader import render_to_string
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import BaseModel, SecretBytes, SecretStr
from pydantic.fields import FieldInfo

from scheduling.core.text import visible_text
from scheduling.core.words import grouped
from scheduling.handlers import Handler
from scheduling.handlers.params import ParamsInvalid, validate
from scheduling.handlers.params_model import keys_of
from scheduling.handlers.secret_params import MASK
from scheduling.handlers.secret_types import is_secret


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
    if is_secret(info.annotation):
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
    """A whole number as the language writes it; any other value as it is."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**18:
        return grouped(value)
    return value


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
