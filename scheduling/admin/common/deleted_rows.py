"""What the page of a deletion lists, without the rows that mean nothing to an operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.apps import apps
from django.utils.text import capfirst


def without_links(objects: Sequence[Any], counts: Mapping[str, int]) -> tuple[list[Any], dict[str, int]]:
    """Leave out the rows of the tables that Django makes for relations, such as “AlertRule_channels object (1)”.

    Args:
        objects: the nested list of `ModelAdmin.get_deleted_objects`.
        counts: the number of rows by the plural name of their model.
    """
    tables = [model._meta for model in apps.get_models(include_auto_created=True) if model._meta.auto_created]
    begins = tuple(f"{capfirst(table.verbose_name)}: " for table in tables)
    plurals = {str(table.verbose_name_plural) for table in tables}
    return _kept(objects, begins), {kind: count for kind, count in counts.items() if str(kind) not in plurals}


def _kept(objects: Sequence[Any], begins: tuple[str, ...]) -> list[Any]:
    """Without these entries, and without the lists that are empty then."""
    kept: list[Any] = []
    for one in objects:
        if isinstance(one, list):
            if inner := _kept(one, begins):
                kept.append(inner)
        elif not str(one).startswith(begins):
            kept.append(one)
    return kept
