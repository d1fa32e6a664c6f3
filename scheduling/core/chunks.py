"""Splits sequences, because a statement takes a limited number of parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

Item = TypeVar("Item")

KEYS_PER_STATEMENT = 500
"""Older versions of SQLite accept at most 999 parameters."""


def chunks(items: Sequence[Item], size: int = KEYS_PER_STATEMENT) -> Iterator[Sequence[Item]]:
    """The items in parts of at most this size, in their order."""
    for start in range(0, len(items), size):
        yield items[start : start + size]
