"""Backs up the tables of schedules and executions, and restores them while processes may have them open."""

from __future__ import annotations

from typing import Any

from django.core.management.color import no_style
from django.db import OperationalError, connection, transaction
from django.db.models import Model

from scheduling.models import Attempt, Deployment, Output, Process, Scheduler, SchedulerExecution

MODELS: tuple[type[Model], ...] = (Output, Attempt, SchedulerExecution, Scheduler)
"""The tables whose rows are restored, those that refer to other ones first."""

EVERYTHING: tuple[type[Model], ...] = (*MODELS, Process, Deployment)

Backup = dict[type[Model], list[dict[str, Any]]]

TRIES = 20


def dump(models: tuple[type[Model], ...] = MODELS) -> Backup:
    """Return all rows of the tables."""
    return {model: list(model._default_manager.values()) for model in models}


def restore(backup: Backup) -> None:
    """Replace all rows, and set the sequences back to the restored rows, as a dump of the database does."""
    for number in range(TRIES):
        try:
            with transaction.atomic():
                _replace(backup)
            break
        except OperationalError:  # a process that runs has locked a row in another order
            if number == TRIES - 1:
                raise
    with connection.cursor() as cursor:
        for model in backup:
            if model is not Deployment:
                _set_sequence(cursor, model, max((row["id"] for row in backup[model]), default=0))


def _replace(backup: Backup) -> None:
    for model in backup:
        model._default_manager.all()._raw_delete("default")
    for model in reversed(backup):
        names = {field.attname for field in model._meta.concrete_fields if not field.generated}
        model._default_manager.bulk_create(
            model(**{name: value for name, value in row.items() if name in names}) for row in backup[model]
        )


def _set_sequence(cursor: Any, model: type[Model], last: int) -> None:
    table = model._meta.db_table
    if connection.vendor == "sqlite":
        cursor.execute("UPDATE sqlite_sequence SET seq = %s WHERE name = %s", [last, table])
    elif connection.vendor == "mysql":
        cursor.execute(f"ALTER TABLE {table} AUTO_INCREMENT = {last + 1}")
    else:
        for statement in connection.ops.sequence_reset_sql(no_style(), [model]):
            cursor.execute(statement)
