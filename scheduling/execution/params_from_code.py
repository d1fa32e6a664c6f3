"""Finds the target and checks the params of a worker that code names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.db.models import TextField, Value
from django.db.models.functions import Cast
from pydantic import BaseModel

from scheduling.core import json_bounds
from scheduling.handlers.params import ParamsInvalid, validate
from scheduling.handlers.params_model import stored
from scheduling.handlers.registry import find
from scheduling.handlers.targets import sync_targets, target_model


@dataclass(frozen=True)
class Target:
    """The row of a worker: its primary key, its default params, and their text as a database server writes it."""

    pk: int
    params: Any
    text: str


_known: dict[str, Target] = {}
"""The rows as this process has last read them."""


def known_target(name: str) -> Target | None:
    """The row of a worker as this process has last read it. It may have changed since; None if it was never read."""
    return _known.get(name)


def targets_of(names: set[str]) -> dict[str, Target]:
    """Map the names of workers to their rows.

    Raises:
        UnknownHandler: no worker is registered under this name in this process.
    """
    for name in names:
        find("worker", name)
    found = _stored(names)
    if len(found) < len(names):
        sync_targets()  # the handler is new, and `migrate` has not run since
        found = _stored(names)
    _known.update(found)
    return found


def _stored(names: set[str]) -> dict[str, Target]:
    rows = target_model("worker")._default_manager.filter(name__in=names)
    # SQLite has no use for the text, and may hold bytes that are none.
    text = Value("") if connection.vendor == "sqlite" else Cast("params", TextField())
    texts = rows.annotate(text=text).values_list("name", "pk", "params", "text")
    return {name: Target(pk, params, text) for name, pk, params, text in texts}


def text_of_params(vendor: str, table: str) -> str:
    """The SQL of the text of a worker's default params, which equals `Target.text`.

    Args:
        table: the name or the alias of the table, as SQL has it.
    """
    return f"{table}.params::text" if vendor == "postgresql" else f"{table}.params"


def checked_params(handler: str, given: Mapping[str, Any] | BaseModel, target: Target) -> dict[str, Any]:
    """The params as JSON data. Together with the params of the worker's row, they fit the params model.

    Raises:
        ParamsInvalid: they do not fit.
        ValueError: they are not JSON.
    """
    params = stored(given) if isinstance(given, BaseModel) else given
    if not isinstance(params, Mapping):
        raise ParamsInvalid({"": "Parameters are a JSON object or an instance of the params model."})
    own = storable(handler, params)
    validate(find("worker", handler), own, target.params if isinstance(target.params, dict) else {})
    return own


def storable(handler: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The params as they are stored and read back.

    Raises:
        ValueError: the params are not JSON, or no database stores them.
    """
    if not params:
        return {}
    try:
        text = json.dumps(dict(params))
        own: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"The parameters of {handler!r} are not JSON: {error}") from None
    try:
        json_bounds.check(own, len(text))
    except json_bounds.NotStorable as error:
        raise ValueError(f"The JSON of the parameters of {handler!r} {error}") from None
    return own
