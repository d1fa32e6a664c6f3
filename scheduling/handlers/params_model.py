"""Makes instances of params models from JSON data, and JSON data from instances."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from django.utils.translation import gettext, gettext_lazy
from pydantic import (
    AliasChoices,
    AliasPath,
    BaseModel,
    ConfigDict,
    RootModel,
    Secret,
    SecretBytes,
    SecretStr,
    ValidationError,
)
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, to_jsonable_python


class ParamsInvalid(ValueError):
    """Params do not fit the handler's params model.

    `errors` maps the dotted name of a field to a sentence. The name is '' for an error that concerns no single field.
    """

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" if name else text for name, text in errors.items()))
        self.errors = errors


def instance(
    model: type[BaseModel], params: Mapping[str, Any], inherited: Mapping[str, Any] | None = None
) -> BaseModel:
    """The params as an instance of a params model. A param that the model does not know is refused.

    Args:
        inherited: lower layers, which `params` override. What the model does not know of them is left out.

    Raises:
        ParamsInvalid: the params do not fit. The error has a sentence for each wrong field.
    """
    data = {**(inherited or {}), **params}
    unknown = unknown_params(model, data)
    refused = [name for name in unknown if name in params]
    kept = {name: value for name, value in data.items() if name not in unknown}
    errors = {name: _unknown(model, name) for name in refused}
    try:
        found = model.model_validate(kept)
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False):
            errors.setdefault(".".join(str(part) for part in problem["loc"]), _sentence(problem))
        raise ParamsInvalid(errors) from None
    if errors:
        raise ParamsInvalid(errors)
    return found


def has_other_names(model: type[BaseModel], *layers: Mapping[str, Any]) -> bool:
    """Whether layers of params have a name that is no field of the params model. It calls no code of the project."""
    fields = _field_names(model)
    return not all(fields.issuperset(layer) for layer in layers)


def unknown_params(model: type[BaseModel], params: Mapping[str, Any]) -> list[str]:
    """The names of params that a params model does not know; empty if it takes any (`extra="allow"`).

    A validator with `mode="before"` may take names that are no fields, such as a former name.
    """
    if model.model_config.get("extra") == "allow" or issubclass(model, RootModel):
        return []
    if not has_other_names(model, params):
        return []
    try:
        forbidding = _forbidding(model)
    except Exception:  # code of the project refuses a subclass, such as an `__init_subclass__` with arguments
        return [str(name) for name in params if name not in _field_names(model)]
    try:
        forbidding.model_validate(dict(params))
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False, include_context=False)
        found = [p["loc"][0] for p in problems if p["type"] == "extra_forbidden" and len(p["loc"]) == 1]
        return [str(name) for name in found if name in params]
    return []


@lru_cache(maxsize=1024)
def _field_names(model: type[BaseModel]) -> frozenset[str]:
    """The names under which the model reads its fields: pydantic reads no field by its name that has an alias, unless
    the model says so."""
    by_name = any(model.model_config.get(option) for option in ("populate_by_name", "validate_by_name"))
    return frozenset(
        name
        for field, info in model.model_fields.items()
        for name in keys_of(field, info)
        if name != field or by_name or info.validation_alias is None or field in _paths(info.validation_alias)
    )


@lru_cache(maxsize=1024)
def _forbidding(model: type[BaseModel]) -> type[BaseModel]:
    """The same model, but with `extra="forbid"`."""
    if model.model_config.get("extra") == "forbid":
        return model
    own = {"model_config": ConfigDict(extra="forbid"), "__module__": model.__module__}
    metaclass: Any = type(model)
    found: type[BaseModel] = metaclass(model.__name__, (model,), own)
    return found


def keys_of(name: str, info: FieldInfo) -> set[str]:
    """The names under which a JSON object may hold the value of this field: the field's name and aliases."""
    found = {name}
    for alias in (info.alias, info.validation_alias):
        if alias is not None:
            found |= _paths(alias)
    return found


def _paths(alias: str | AliasPath | AliasChoices) -> set[str]:
    """The names with which an alias begins."""
    paths = alias.choices if isinstance(alias, AliasChoices) else [alias]
    return {path if isinstance(path, str) else str(path.path[0]) for path in paths}


def _unknown(model: type[BaseModel], name: str) -> str:
    names = [info.alias or field for field, info in model.model_fields.items()]
    close = get_close_matches(name, names, n=1)
    text = str(_PLAIN["extra_forbidden"])
    return gettext("%(text)s; did you mean %(name)s?") % {"text": text, "name": close[0]} if close else text


def stored(params: BaseModel) -> dict[str, Any]:
    """The fields that were set, as JSON data. The params model reads them back from it.

    Raises:
        ValueError: a field has a value that is not JSON.
    """
    fields = _revealed(params.model_dump(by_alias=True, exclude_unset=True))
    try:
        found: dict[str, Any] = to_jsonable_python(fields)
    except PydanticSerializationError as error:
        raise ValueError(f"The parameters are not JSON: {error}") from None
    return found


def plain_defaults(model: type[BaseModel]) -> dict[str, Any]:
    """The default values of the fields of a params model, by name. A default that a function makes is left out."""
    fields = model.model_fields.items()
    return {name: field.default for name, field in fields if not field.is_required() and field.default_factory is None}


def _revealed(value: Any) -> Any:
    """The value with the contents of pydantic's secrets. As JSON, pydantic would write stars."""
    match value:
        case SecretStr() | SecretBytes() | Secret():
            return value.get_secret_value()
        case dict():
            return {name: _revealed(item) for name, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [_revealed(item) for item in value]
        case _:
            return value


_PLAIN = {
    "missing": gettext_lazy("must be given"),
    "extra_forbidden": gettext_lazy("there is no such parameter"),
    "greater_than_equal": gettext_lazy("must be at least %(ge)s"),
    "greater_than": gettext_lazy("must be more than %(gt)s"),
    "less_than_equal": gettext_lazy("must be at most %(le)s"),
    "less_than": gettext_lazy("must be less than %(lt)s"),
    "int_type": gettext_lazy("must be a whole number"),
    "int_parsing": gettext_lazy("must be a whole number"),
    "int_from_float": gettext_lazy("must be a whole number"),
    "float_type": gettext_lazy("must be a number"),
    "float_parsing": gettext_lazy("must be a number"),
    "bool_type": gettext_lazy("must be true or false"),
    "bool_parsing": gettext_lazy("must be true or false"),
    "string_type": gettext_lazy("must be a text"),
    "list_type": gettext_lazy("must be a list"),
    "dict_type": gettext_lazy("must be a JSON object"),
    "model_type": gettext_lazy("must be a JSON object"),
    "literal_error": gettext_lazy("must be one of these: %(expected)s"),
}
"""Maps the types of pydantic's most frequent errors to plain words. All other errors keep the words of pydantic."""


def _sentence(problem: Mapping[str, Any]) -> str:
    plain = _PLAIN.get(problem["type"])
    return str(problem["msg"]) if plain is None else str(plain) % problem.get("ctx", {})
