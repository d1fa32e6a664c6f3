"""Tells by its type whether a param may hold a secret."""

from __future__ import annotations

import typing
from dataclasses import is_dataclass
from typing import Any

from pydantic import BaseModel, Secret, SecretBytes, SecretStr


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
