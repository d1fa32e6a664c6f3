"""Target rows: registered code gets its Worker or Report row by itself."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.db import DEFAULT_DB_ALIAS, models

from scheduling.models import Reminder, Scheduler, Worker
from scheduling.registry import handlers


def target_model(type_: str) -> type[models.Model]:
    """The model of a target type; `reports` is reached through the foreign key only.

    Raises:
        LookupError: for an unknown type.
    """
    if type_ == "worker":
        return Worker
    if type_ == "reminder":
        return Reminder
    if type_ == "report":
        related = Scheduler._meta.get_field("report").related_model
        assert isinstance(related, type)  # noqa: S101 - resolved once the apps are loaded
        return related
    raise LookupError(f"There is no target type {type_!r}: it is worker, report or reminder.")


def find_target(type_: str, target_id: int | None) -> models.Model | None:
    """The target's row, if the type is known and the row is there."""
    try:
        model = target_model(type_)
    except LookupError:
        return None
    return None if target_id is None else model._default_manager.filter(pk=target_id).first()


NAME_FIELD = {"worker": "name", "report": "controller"}
"""The column of a target row that names its code."""


def sync_targets(using: str = DEFAULT_DB_ALIAS) -> int:
    """Make the rows that are missing for registered code; returns how many.

    Existing rows keep what operators changed. Rows whose code is gone stay: their history
    does, and the code may come back with the next deploy.
    """
    made = 0
    for type_, column in NAME_FIELD.items():
        model = target_model(type_)
        rows = model._default_manager.using(using)
        known = set(rows.values_list(column, flat=True))
        missing = [
            model(**{column: each.name, "title": each.title, "description": each.description})
            for each in handlers(type_)
            if each.name not in known
        ]
        # Two processes may start at once; the unique name lets one of them win.
        rows.bulk_create(missing, ignore_conflicts=True)
        made += len(missing)
    return made


def sync_after_migrate(sender: Any, using: str = DEFAULT_DB_ALIAS, **_kwargs: Any) -> None:
    """`post_migrate` receiver: as soon as both tables exist, fill them."""
    from django.db import connections

    tables = set(connections[using].introspection.table_names())
    wanted = {target_model(type_)._meta.db_table for type_ in NAME_FIELD}
    if apps.ready and wanted <= tables:
        sync_targets(using)
