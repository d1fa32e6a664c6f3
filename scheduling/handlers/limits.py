"""Checks the limits of a handler's runs when the handler is registered."""

from __future__ import annotations

import math
from typing import TypeGuard


def limits_problem(time_limit: int | None, soft_time_limit: object, memory_limit: object) -> str:
    """Why a limit cannot be used; empty if they can. A `time_limit` of 0 or None limits nothing here."""
    if memory_limit is not None and not _is_number(memory_limit):
        return f"memory_limit must be a number of MiB above 0, not {memory_limit!r:.50}."
    if soft_time_limit is None:
        return ""
    if not _is_number(soft_time_limit):
        return f"soft_time_limit must be a number of seconds above 0, not {soft_time_limit!r:.50}."
    if time_limit and soft_time_limit >= time_limit:
        return f"soft_time_limit ({soft_time_limit:g} s) must be below time_limit ({time_limit:g} s)."
    return ""


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < math.inf
