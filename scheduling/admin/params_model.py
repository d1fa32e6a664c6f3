"""A handler's params model, shown to operators, and held against what they write."""

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

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from pydantic import AliasChoices, AliasPath, BaseModel, Secret, SecretBytes, SecretStr
from pydantic.fields import FieldInfo

from scheduling.admin.text import shown
from scheduling.params import ParamsInvalid, validate
from scheduling.registry import Handler

MASK = "••••••"


def params_table(model: type[BaseModel]) -> SafeString:
    """The model's fields as a table: name, type, default, description."""
    if not model.model_fields:
        return format_html('<p class="sch-quiet">{}</p>', _("It takes no parameters."))
    rows = format_html_join(
        "",
        '<tr><th scope="row"><code>{}</code></th><td><code>{}</code></td><td>{}</td><td>{}</td></tr>',
        (
            (info.alias or name, type_text(info), _default(info), shown(info.description or "", 500))
            for name, info in model.model_fields.items()
        ),
    )
    head = format_html_join("", '<th scope="col">{}</th>', ((_(w),) for w in ("Name", "Type", "Default", "Meaning")))
    return format_html(
        '<div class="sch-scroll"><table class="sch-table"><caption class="sch-hidden">{}</caption>'
        "<thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>",
        _("Parameters"),
        head,
        rows,
    )


def _default(info: FieldInfo) -> SafeString:
    if info.is_required():
        return format_html("<em>{}</em>", _("required"))
    if _is_secret(info.annotation):
        return mark_safe(MASK)  # noqa: S308 - a constant
    if info.default_factory is not None:
        return format_html("<em>{}</em>", _("made anew"))
    return format_html("<code>{}</code>", shown(_literal(info.default), 120))


def type_text(info: FieldInfo) -> str:
    """A field's type in words close to JSON, with its bounds: `integer, 1 to 90`, `one of "eu", "us"`."""
    text = _annotation(info.annotation)
    bounds = {name: getattr(each, name) for each in info.metadata for name in _BOUNDS if hasattr(each, name)}
    words = [str(_BOUNDS[name]) % {"value": value} for name, value in bounds.items() if value is not None]
    return ", ".join([text, *words])


_BOUNDS = {
    "ge": gettext_lazy("from %(value)s"),
    "gt": gettext_lazy("above %(value)s"),
    "le": gettext_lazy("to %(value)s"),
    "lt": gettext_lazy("below %(value)s"),
    "min_length": gettext_lazy("at least %(value)s long"),
    "max_length": gettext_lazy("at most %(value)s long"),
    "multiple_of": gettext_lazy("a multiple of %(value)s"),
    "pattern": gettext_lazy("like %(value)s"),
}

_NAMES = {
    int: gettext_lazy("integer"),
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
        return _(" or ").join("null" if each is type(None) else _annotation(each) for each in arguments)
    if origin in (list, tuple, set, frozenset) and arguments:
        return _("list of %(what)s") % {"what": _annotation(arguments[0])}
    if origin is dict and len(arguments) == 2:
        return _("object of %(what)s") % {"what": _annotation(arguments[1])}
    if isinstance(annotation, type) and issubclass(annotation, Enum):
        return _one_of([each.value for each in annotation])
    return str(_NAMES.get(annotation) or getattr(annotation, "__name__", annotation))


def _one_of(values: Iterable[Any]) -> str:
    return _("one of %(values)s") % {"values": ", ".join(_literal(each) for each in values)}


def _literal(value: Any) -> str:
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json")
    return json.dumps(value.value if isinstance(value, Enum) else value, ensure_ascii=False, default=str)


def _is_secret(annotation: Any, met: frozenset[Any] = frozenset()) -> bool:
    """Whether a value of this type may hold a secret, at any depth: then all of it is hidden."""
    annotation = getattr(annotation, "__value__", annotation)  # a name given to a type
    if isinstance(annotation, type):
        if issubclass(annotation, (SecretStr, SecretBytes, Secret)):
            return True
        if annotation not in met:
            # A type may hold itself.
            return any(_is_secret(each, met | {annotation}) for each in _inside(annotation))
        return False
    parts = (typing.get_origin(annotation), *typing.get_args(annotation))
    return any(_is_secret(each, met) for each in parts if each is not None)


def _inside(kind: type) -> list[Any]:
    """The types of what an object of this type is made of."""
    if issubclass(kind, BaseModel):
        return [info.annotation for info in kind.model_fields.values()]
    if not (is_dataclass(kind) or hasattr(kind, "__total__") or hasattr(kind, "_fields")):  # a TypedDict, a NamedTuple
        return []
    try:
        return list(typing.get_type_hints(kind).values())
    except (NameError, TypeError):
        return [SecretStr]  # nobody can say: better hidden for nothing than shown


def keys_of(name: str, info: FieldInfo) -> set[str]:
    """The keys of the JSON object from which a field is read."""
    found = {name}
    for alias in (info.alias, info.validation_alias):
        if isinstance(alias, AliasPath | AliasChoices):
            paths = alias.choices if isinstance(alias, AliasChoices) else [alias]
            found |= {each if isinstance(each, str) else str(each.path[0]) for each in paths}
        elif alias is not None:
            found.add(alias)
    return found


def secret_names(handler: Handler | None) -> set[str]:
    """Names and aliases of the fields whose type is secret, or holds one."""
    if handler is None:
        return set()
    return {
        known
        for name, info in handler.params.model_fields.items()
        if _is_secret(info.annotation)
        for known in keys_of(name, info)
    }


def masked(handler: Handler | None, params: Any) -> Any:
    """Params to look at: the values of fields whose type is secret are hidden."""
    if handler is None or not isinstance(params, dict):
        return params
    secret = secret_names(handler)
    return {name: MASK if name in secret and value not in (None, "") else value for name, value in params.items()}


def default_problems(handler: Handler, params: dict[str, Any]) -> list[str]:
    """Why defaults of a target row do not fit the handler's model, a sentence each.

    A required parameter may be missing here: each Scheduler can still give it.
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
