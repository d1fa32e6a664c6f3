"""Instants that the database writes as texts. A row that comes again is compared, and its instants are not converted.

The drivers of MySQL and PostgreSQL convert each instant in Python. That is a fifth of an evaluation of 200 rules.
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
    """The rows as `values_list(*columns)` gives them, with texts in place of instants. See `with_instants`.

    The driver of SQLite gives texts anyway.
    """
    if connection.vendor == "sqlite":
        return rows.values_list(*columns)
    return rows.values_list(
        *(_InstantAsText(name, TextField()) if _is_instant(rows.model, name) else name for name in columns)
    )


def _is_instant(model: type[Model], name: str) -> bool:
    try:
        return isinstance(model._meta.get_field(name), DateTimeField)
    except FieldDoesNotExist:  # "pk", or an expression
        return False


def with_instants(selected: Sequence[Any], rows: Iterable[Values]) -> list[Values]:
    """The rows of `with_texts` with instants that have a zone.

    Args:
        selected: the expressions that the query selects.

    Raises:
        ValueError: a text is no instant of the calendar.
    """
    places = [place for place, column in enumerate(selected) if isinstance(column, _InstantAsText)]
    if not places:
        return list(rows)
    found: list[Values] = []
    for row in rows:
        values = list(row)
        for place in places:
            if values[place] is not None:
                values[place] = _instant(values[place])
        found.append(tuple(values))
    return found


def _instant(text: str) -> datetime:
    instant = datetime.fromisoformat(text)
    # MySQL writes no zone. Its instants have the zone of the connection.
    return make_aware(instant, connection.timezone) if instant.tzinfo is None else instant
