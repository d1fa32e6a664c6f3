"""A selection of rows that an action goes through: in chunks, and within a bounded time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TypeVar

from django.db import models

Row = TypeVar("Row", bound=models.Model)

CHUNK = 500
BUDGET_SECONDS = 20.0
"""How long one request may work: less than a usual web server's patience. The rest stays as it
was, and the operator is told to go on."""


def in_chunks(queryset: models.QuerySet[Row], size: int = CHUNK, budget: float = BUDGET_SECONDS) -> Iterator[list[Row]]:
    """Lists of rows by primary key, until none is left or the time is used up.

    Each chunk is a query of its own that begins after the last key seen: rows that leave the
    selection while it is worked on, because of the work, are neither missed nor met twice.
    """
    end = time.monotonic() + budget
    last = 0
    while True:
        chunk = list(queryset.order_by("pk").filter(pk__gt=last)[:size])
        if chunk:
            yield chunk
            last = chunk[-1].pk
        if len(chunk) < size or time.monotonic() > end:
            return
