"""Writes and removes the places of executions, with statements that are built once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import QuerySet
from django.db.models.constants import OnConflict

from scheduling.execution.key_facts import HELD, WAITS
from scheduling.execution.transitions import adapted
from scheduling.models import LimitPlace, SchedulerExecution


class Place(NamedTuple):
    """The place of an execution, as it was read."""

    limit: int
    state: str
    attempt: int | None


def store_places(places: Mapping[int, Place], now: datetime) -> None:
    """Insert or change the places of executions."""
    if not places:
        return
    since = adapted(now)
    values = [value for pk, own in sorted(places.items()) for value in (pk, own.limit, own.state, own.attempt, since)]
    with connection.cursor() as cursor:
        cursor.execute(_insert(connection.vendor, len(places)), values)


def remove_places(attempts: Iterable[tuple[int, int]]) -> None:
    """Free the places that attempts hold.

    Args:
        attempts: pairs of an execution and the number of the attempt. The place of a later attempt stays.
    """
    executions: dict[int, list[int]] = {}
    for pk, attempt in attempts:
        executions.setdefault(attempt, []).append(pk)
    for attempt, keys in executions.items():
        with connection.cursor() as cursor:
            cursor.execute(_delete(connection.vendor, len(keys)), [*keys, HELD, attempt])


def not_in_line(rows: QuerySet[SchedulerExecution]) -> QuerySet[SchedulerExecution]:
    """Those of the executions that wait for something else than a place. A free place wakes those in the line."""
    return rows.exclude(place__state=WAITS)


@lru_cache(maxsize=256)
def _insert(_vendor: str, count: int) -> str:
    names = ("execution", "limit", "state", "attempt", "since")
    fields: list[Any] = [LimitPlace._meta.get_field(name) for name in names]
    execution, *others = (str(field.column) for field in fields)
    # Django writes this part, because each database has a way of its own.
    conflict = connection.ops.on_conflict_suffix_sql(fields, OnConflict.UPDATE, others, [execution])
    quote = connection.ops.quote_name
    columns = ", ".join(quote(name) for name in (execution, *others))
    rows = ", ".join(["(%s, %s, %s, %s, %s)"] * count)
    return f"INSERT INTO {quote(LimitPlace._meta.db_table)} ({columns}) VALUES {rows} {conflict}"  # noqa: S608


@lru_cache(maxsize=256)
def _delete(_vendor: str, count: int) -> str:
    quote = connection.ops.quote_name
    table, marks = quote(LimitPlace._meta.db_table), ", ".join(["%s"] * count)
    execution, state, attempt = (quote(name) for name in ("execution_id", "state", "attempt"))
    return f"DELETE FROM {table} WHERE {execution} IN ({marks}) AND {state} = %s AND {attempt} = %s"  # noqa: S608
