"""The qualifier `param:` of a search: `param:region=eu` finds the executions whose parameter has this value."""

from __future__ import annotations

import json
import math
from typing import Any

from django.db.models import Q
from django.db.models.fields.json import KeyTransform

from scheduling.handlers import handlers
from scheduling.handlers.secret_params import secret_names
from scheduling.models import SchedulerExecution

MOST_PARTS = 5
"""A path such as `delivery.format` has at most so many parts."""


def path_of(text: str) -> tuple[list[str], str] | None:
    """The path of a parameter and the wanted value; None if the text is not `path=value`."""
    path, equals, value = text.partition("=")
    parts = path.strip().split(".")
    if not equals or not all(parts) or len(parts) > MOST_PARTS:
        return None
    return parts, value.strip()


def with_param(text: str) -> Q:
    """The condition on executions whose parameter has the value.

    The value is a text, and also a number, true, false or null if it is written like one. A parameter that is a secret
    of the execution's code finds nothing: a viewer could else guess the secret.
    """
    found = path_of(text)
    if found is None:
        return Q(pk__in=())
    parts, value = found
    transform: Any = KeyTransform(parts[0], "params")
    for part in parts[1:]:
        transform = KeyTransform(part, transform)
    # A keyword such as `params__contains` would be a lookup. A lookup of an expression prepares its value as JSON only
    # if the expression knows its column.
    transform = transform.resolve_expression(SchedulerExecution.objects.all().query)
    exact = transform.get_lookup("exact")
    condition = Q(exact(transform, value))
    if (scalar := _scalar(value)) is not _NONE:
        condition |= Q(exact(transform, scalar))
    for handler in handlers():
        if parts[0] in secret_names(handler):
            condition &= ~Q(type=handler.type, target_name=handler.name)
    return condition


_NONE = object()


def _scalar(value: str) -> Any:
    """The number, the boolean or the null that the text stands for; `_NONE` if it stands for none of them."""
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return _NONE
    if isinstance(found, float) and not math.isfinite(found):  # no database has such a number in JSON
        return _NONE
    return found if found is None or isinstance(found, bool | int | float) else _NONE
