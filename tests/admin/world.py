"""Shows which rows an action has changed. `world` takes a snapshot, and `changed` compares two snapshots."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.apps import apps
from django.contrib.sessions.models import Session
from django.db import connection

from scheduling.processes.guard import guard

World = dict[str, list[tuple[Any, ...]]]

PASSING = (Session,)
"""Django models whose rows may change when a user only views a page."""


def world() -> World:
    """Return the present rows of each table, as the driver returns them. The tables of PASSING are left out.

    Plain SQL is ten times faster here than the ORM, and a test takes many hundred snapshots.
    """
    guard.look()  # the first look after a flush writes the identity of the deployment
    found: World = {}
    with connection.cursor() as cursor:
        for label, statement in _statements().items():
            cursor.execute(statement)
            found[label] = list(cursor.fetchall())
    return found


@cache
def _statements() -> dict[str, str]:
    """The statement that reads all rows of a table, for each model."""
    name = connection.ops.quote_name
    return {
        model._meta.label: (
            f"SELECT {', '.join(name(field.column) for field in model._meta.concrete_fields)} "
            f"FROM {name(model._meta.db_table)} ORDER BY {name(model._meta.pk.column)}"
        )
        for model in apps.get_models()
        if model._meta.managed and not model._meta.proxy and model not in PASSING
    }


def changed(before: World, after: World) -> dict[str, list[tuple[Any, ...]]]:
    """Return the added and deleted rows by table. A changed row is listed with its old and with its new values."""
    found = {
        label: [row for row in [*rows, *after[label]] if (row in rows) != (row in after[label])]
        for label, rows in before.items()
        if rows != after[label]
    }
    return {label: rows for label, rows in found.items() if rows}
