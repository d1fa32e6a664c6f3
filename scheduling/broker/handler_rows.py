"""Finds the executions of some handlers."""

from __future__ import annotations

from django.db.models import Q, QuerySet

from scheduling.core.targets import TARGET_KINDS

Handlers = frozenset[tuple[str, str]] | None
"""The types and names of handlers; None: all of them."""


def runs_of(rows: QuerySet, handlers: Handlers) -> QuerySet:
    """Those of the executions that these handlers run."""
    if handlers is None:
        return rows
    found = Q(pk__in=[])
    for type_, kind in TARGET_KINDS.items():
        names = sorted(name for each, name in handlers if each == type_)
        if names:
            # All rows of such a kind share one handler, and have names of their own.
            found |= Q(type=type_) if kind.handler else Q(type=type_, target_name__in=names)
    return rows.filter(found)
