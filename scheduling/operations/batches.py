"""Reads many rows in chunks, for a request that works on them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from django.db import models

Row = TypeVar("Row", bound=models.Model)


class RequestLimits:
    """Limits for a request that works on many rows."""

    chunk_rows = 500
    seconds = 20.0
    """The request stops its work after this time. Many web servers end a request after 30 s, so the limit is lower.

    The remaining rows stay unchanged, and a further request continues the action.
    """


@contextmanager
def passes_of(seconds: float) -> Iterator[None]:
    """Inside this context, each work on many rows stops after so many seconds. For a process with one thread."""
    before = RequestLimits.seconds
    RequestLimits.seconds = seconds
    try:
        yield
    finally:
        RequestLimits.seconds = before


def in_chunks(queryset: models.QuerySet[Row]) -> Iterator[list[Row]]:
    """Yields lists of rows in the order of their primary keys, until no row is left or the time limit is reached.

    A separate query reads each chunk and begins after the last key of the previous chunk. So no row is missed or read
    twice, even if the action changes rows so that they no longer match the queryset.
    """
    size, end = RequestLimits.chunk_rows, time.monotonic() + RequestLimits.seconds
    last = 0
    while True:
        chunk = list(queryset.order_by("pk").filter(pk__gt=last)[:size])
        if chunk:
            yield chunk
            last = chunk[-1].pk
        if len(chunk) < size or time.monotonic() > end:
            return
