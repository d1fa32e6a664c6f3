"""Reads how many runs of a key have a place, and which run has waited longest, with one statement for many keys."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import connection

from scheduling.models import LimitKey, LimitPlace

HELD, GRANTED, WAITS = (
    LimitPlace.States.HELD.value,
    LimitPlace.States.GRANTED.value,
    LimitPlace.States.WAITING.value,
)


class KeyFacts(NamedTuple):
    """The places of one key.

    Args:
        taken: how many runs have a place: they run, or were let through.
        granted: how many of them were let through and have not started.
        first: the execution that has waited longest; None if none waits.
    """

    taken: int
    granted: int
    first: int | None


def facts_of(limits: Collection[int]) -> dict[int, KeyFacts]:
    """The facts of limits, by their primary keys. Call it after the rows of the limits are locked."""
    if not limits:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(_statement(connection.vendor, len(limits)), [GRANTED, HELD, GRANTED, WAITS, *limits])
        found = cursor.fetchall()
    return {
        int(pk): KeyFacts(int(taken), int(granted), None if first is None else int(first))
        for pk, taken, granted, first in found
    }


def first_waiting(limit: int, facts: KeyFacts, count: int) -> list[int]:
    """The executions that wait for a place of a key, at most `count`, the one that has waited longest first."""
    if facts.first is None or count < 1:
        return []
    if count == 1:
        return [facts.first]
    rows = LimitPlace.objects.filter(limit=limit, state=WAITS).order_by("since", "pk")
    return whole_keys(rows.values_list("pk", flat=True)[:count])


def whole_keys(keys: Iterable[Any]) -> list[int]:
    """The keys without those that are no number. SQLite stores any text as the key of a place."""
    return [key for key in keys if type(key) is int]


@lru_cache(maxsize=256)
def _statement(vendor: str, count: int) -> str:
    quote = connection.ops.quote_name
    key, place = quote(LimitKey._meta.db_table), quote(LimitPlace._meta.db_table)
    own = f"p.{quote('limit_id')} = k.{quote('id')} AND p.{quote('state')}"
    if vendor == "sqlite":  # a text that plain SQL has stored holds no place and is not in the line
        own = f"typeof(p.{quote('execution_id')}) = 'integer' AND {own}"
    marks = ", ".join(["%s"] * count)
    taken = f"SELECT COUNT(*) FROM {place} p WHERE {own} IN (%s, %s)"  # noqa: S608 - names of tables and columns
    granted = f"SELECT COUNT(*) FROM {place} p WHERE {own} = %s"  # noqa: S608
    order = f"p.{quote('since')}, p.{quote('execution_id')}"
    first = f"SELECT p.{quote('execution_id')} FROM {place} p WHERE {own} = %s ORDER BY {order} LIMIT 1"  # noqa: S608
    columns = f"k.{quote('id')}, ({taken}), ({granted}), ({first})"
    return f"SELECT {columns} FROM {key} k WHERE k.{quote('id')} IN ({marks})"  # noqa: S608
