"""Reads many rows in parts, without a cursor on the server.

Behind a pooler such as pgbouncer, each statement may reach another session of the server, and a cursor belongs to one
session. So `QuerySet.iterator` works there only in a transaction, or with DISABLE_SERVER_SIDE_CURSORS.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from django.db.models import Model, QuerySet

PART = 1_000

Row = TypeVar("Row", bound=Model)


def rows_in_parts(rows: QuerySet[Row], size: int = PART) -> Iterator[Row]:
    """Yield the rows in the order of the primary key.

    Args:
        size: how many rows one query reads.
    """
    ordered = rows.order_by("pk")
    part = list(ordered[:size])
    while part:
        yield from part
        part = list(ordered.filter(pk__gt=part[-1].pk)[:size]) if len(part) == size else []
