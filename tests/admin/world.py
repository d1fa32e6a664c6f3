"""Shows which rows an action has changed. `world` takes a snapshot, and `changed` compares two snapshots."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib.sessions.models import Session

World = dict[str, list[tuple[Any, ...]]]

PASSING = (Session,)
"""Django models whose rows may change when a user only views a page."""


def world() -> World:
    """Return the present rows of each table. The tables of PASSING are left out."""
    return {
        model._meta.label: sorted(model._base_manager.values_list(), key=repr)
        for model in apps.get_models()
        if model._meta.managed and not model._meta.proxy and model not in PASSING
    }


def changed(before: World, after: World) -> dict[str, list[tuple[Any, ...]]]:
    """Return the added and deleted rows by table. A changed row is listed with its old and with its new values."""
    found = {
        label: [row for row in [*rows, *after[label]] if (row in rows) != (row in after[label])]
        for label, rows in before.items()
    }
    return {label: rows for label, rows in found.items() if rows}
