"""Finds and masks the params that may contain a secret. The types of the params model say which params these are."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from scheduling.handlers.params_model import keys_of
from scheduling.handlers.registry import Handler
from scheduling.handlers.secret_types import is_secret

MASK = "••••••"


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
