"""Reads the newest executions that a user sees, at the same cost for each user, in a table of any size.

A user who sees few of many executions would wait long: the database would read the newest executions of all groups
until it has found enough. So each part of what the user sees is read on its own, from one range of the index (group,
state, -id), and the parts are put together.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from itertools import islice
from typing import Any

from django.core.exceptions import EmptyResultSet
from django.db import connections
from django.db.models import Min, Q, QuerySet
from django.db.models.functions import Coalesce

from scheduling.core.lifecycle import State
from scheduling.models.execution import FailedExecution
from scheduling.models.visibility import Visibility

Rows = QuerySet[Any]

SCANNED_FAILURES = 1_000
"""The maximum number of failures that the look for the oldest failure reads in each part."""


def in_parts(rows: Rows, visible: Visibility) -> list[Rows]:
    """The rows in parts that exclude each other, to be counted. A user who sees everything has one part."""
    return [rows.filter(part) for part in visible.parts] if visible.is_limited else [rows]


def _in_order(rows: Rows, visible: Visibility, oldest: bool = False) -> list[Rows]:
    """The parts of the rows, each in the order of an index if one has it."""
    if not visible.is_limited:
        return [rows.order_by("pk" if oldest else "-pk")]
    by_key, by_group = ("pk", "-group_id") if oldest else ("-pk", "group_id")
    order = [by_group, by_key] if group_comes_first(rows.db) else [by_key]
    parts = [rows.filter(part).order_by(*order) for part in visible.single_groups]
    rest = visible.other_groups
    return parts if rest is None else [*parts, rows.filter(rest).order_by(by_key)]


def group_comes_first(alias: str) -> bool:
    """Whether the order of a part must begin with the group, although the group has one value in it.

    PostgreSQL does not see that `IS NULL` leaves one value. It reads the index in order only if the order has the
    columns of the index. MariaDB does the opposite: with the group in the order, it sorts all rows of the part.
    """
    return connections[alias].vendor == "postgresql"


def newest_values(
    rows: Rows, visible: Visibility, columns: Sequence[str], most: int, oldest: bool = False
) -> list[Any]:
    """The values of the newest executions, the newest first.

    Args:
        rows: executions in one state. What the user does not see is left out here.
        columns: the columns to read.
        most: at most this many executions are read.
        oldest: whether to read the oldest executions instead, the oldest first.
    """
    parts = _in_order(rows, visible, oldest)
    if len(parts) == 1:
        return list(parts[0].values_list(*columns)[:most])
    found = [row for part in parts for row in part.values_list("pk", *columns)[:most]]
    found.sort(key=lambda row: row[0] if oldest else -row[0])
    return [tuple(row[1:]) for row in islice(found, most)]


def newest_keys(rows: Rows, visible: Visibility, start: int, stop: int, any_state: bool) -> list[int]:
    """The primary keys of the newest executions, the newest first: those from the place `start` to before `stop`.

    Args:
        any_state: whether no filter has chosen a state. The index is then read once for each state.
    """
    conditions = [Q(state=state.value) for state in State] if any_state else [Q()]
    connection = connections[rows.db]
    parts: list[str] = []
    params: list[Any] = []
    for part in _in_order(rows, visible):
        for condition in conditions:
            limited = part.filter(condition).values("id")[:stop]
            try:
                sql, values = limited.query.get_compiler(connection=connection).as_sql()
            except EmptyResultSet:  # a condition that no row can meet
                continue
            parts.append(f"SELECT id FROM ({sql}) AS part{len(parts)}")  # noqa: S608 - Django's own SQL
            params += values
    if not parts:
        return []
    with connection.cursor() as cursor:
        together = f"SELECT id FROM ({' UNION ALL '.join(parts)}) AS newest ORDER BY id DESC LIMIT %s OFFSET %s"  # noqa: S608
        cursor.execute(together, [*params, stop - start, start])
        return [key for (key,) in cursor.fetchall()]


def oldest_failure(visible: Visibility) -> datetime | None:
    """The time of the oldest failure in the inbox that the user sees; None if there is none.

    Only `SCANNED_FAILURES` of each part are read, in the order of their ids. No index contains the time of the failure,
    so sorting all failed executions by this time would be slow.
    """
    failures = FailedExecution.objects.filter(state=State.FAILED.value)
    first = [part[:SCANNED_FAILURES] for part in _in_order(failures, visible, oldest=True)]
    times = [part.aggregate(oldest=Min(Coalesce("finished_at", "executed_at")))["oldest"] for part in first]
    return min((time for time in times if time is not None), default=None)
