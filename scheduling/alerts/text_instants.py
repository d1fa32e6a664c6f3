"""Instants that the database writes as texts. A row that comes again is compared, and its instants are not converted.

The drivers convert each instant in Python. That was a fifth of an evaluation of 200 rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.core.exceptions import FieldDoesNotExist
from django.db import connection
from django.db.models import DateTimeField, Model, QuerySet, TextField
from django.db.models.functions import Cast
from django.utils.timezone import make_aware

Values = tuple[Any, ...]


class _InstantAsText(Cast):
    """An instant as the database writes it."""


def with_texts(rows: QuerySet[Any], columns: Sequence[str]) -> QuerySet[Any, Any]:
    """The rows as `values_list(*columns)` gives them, with texts in place of instants. See `with_instants`."""
    return rows.values_list(
        *(_InstantAsText(name, TextField()) if _is_instant(rows.model, name) else name for name in columns)
    )


def _is_instant(model: type[Model], name: str) -> bool:
    try:
        return isinstance(model._meta.get_field(name), DateTimeField)
    except FieldDoesNotExist:  # "pk", or an expression
        return False


def with_instants(selected: Sequence[Any], rows: Iterable[Values]) -> list[Values]:
    """The rows of `with_texts` with instants that have a zone. An instant that cannot be read counts as unknown: None.

    Args:
        selected: the expressions that the query selects.
    """
    places = [place for place, column in enumerate(selected) if isinstance(column, _InstantAsText)]
    if not places:
        return list(rows)
    found: list[Values] = []
    for row in rows:
        values = list(row)
        for place in places:
            values[place] = _instant(values[place])
        found.append(tuple(values))
    return found


def _instant(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        instant = datetime.fromisoformat(text)
        # Only PostgreSQL writes the zone. The others write instants in the zone of the connection.
        return make_aware(instant, connection.timezone) if instant.tzinfo is None else instant
    except (ValueError, OverflowError):
        return None  # plain SQL has written it, such as "infinity"
