"""Everything that is stored, to be compared with what is stored afterwards."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.contrib.sessions.models import Session

World = dict[str, list[tuple[Any, ...]]]

PASSING = (Session,)
"""Looking at a page may write these."""


def world() -> World:
    """All rows of all tables."""
    return {
        model._meta.label: sorted(model._base_manager.values_list(), key=repr)
        for model in apps.get_models()
        if model._meta.managed and not model._meta.proxy and model not in PASSING
    }


def changed(before: World, after: World) -> dict[str, list[tuple[Any, ...]]]:
    """The rows that are there afterwards and were not before, and those that are gone, by table."""
    found = {
        label: [row for row in [*rows, *after[label]] if (row in rows) != (row in after[label])]
        for label, rows in before.items()
    }
    return {label: rows for label, rows in found.items() if rows}
