"""Finds and masks the params that may contain a secret. The types of the params model say which params these are."""

from __future__ import annotations

import typing
from dataclasses import is_dataclass
from functools import lru_cache
from typing import Any

from pydantic import AliasChoices, AliasPath, BaseModel, Secret, SecretBytes, SecretStr
from pydantic.fields import FieldInfo

from scheduling.handlers.registry import Handler

MASK = "••••••"


def is_secret(annotation: Any, met: frozenset[Any] = frozenset()) -> bool:
    """Whether a value of this type may contain a secret at any depth. Pages hide such a value completely."""
    annotation = getattr(annotation, "__value__", annotation)  # the type behind a type alias
    if not isinstance(annotation, type):
        parts = (typing.get_origin(annotation), *typing.get_args(annotation))
        return any(is_secret(part, met) for part in parts if part is not None)
    if annotation in met:  # the type contains itself
        return False
    return issubclass(annotation, (SecretStr, SecretBytes, Secret)) or any(
        is_secret(inner, met | {annotation}) for inner in _inside(annotation)
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
    return set() if handler is None else set(_names(handler.params))


@lru_cache(maxsize=1024)
def _names(model: type[BaseModel]) -> frozenset[str]:
    return frozenset(
        known
        for name, info in model.model_fields.items()
        if is_secret(info.annotation)
        for known in keys_of(name, info)
    )


def masked(handler: Handler | None, params: Any) -> Any:
    """The params, in which the values of secret parameters are replaced by `MASK`. Empty values stay empty."""
    if handler is None or not isinstance(params, dict):
        return params
    secret = secret_names(handler)
    return {name: MASK if name in secret and value not in (None, "") else value for name, value in params.items()}
