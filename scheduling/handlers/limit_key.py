"""Checks the key of a limit when its handler is registered."""

from __future__ import annotations

from pydantic import BaseModel

from scheduling.core.run_limit import Limit, limit_problem
from scheduling.handlers.secret_types import is_secret


def limit_key_problem(limit: Limit | None, params: type[BaseModel]) -> str:
    """Why the option `limit` cannot be used with these params; empty if it can."""
    if limit is None or (problem := limit_problem(limit)):
        return "" if limit is None else problem
    if not isinstance(limit.key, str) or not limit.key:
        return ""
    field = params.model_fields.get(limit.key)
    if field is None:
        return f"limit: the params have no field {limit.key!r}."
    if is_secret(field.annotation):
        return f"limit: the param {limit.key!r} may hold a secret, and pages show the key."
    return ""
