"""Inserts the row of one run with one statement, if nothing has changed since the last run of this handler.

Otherwise `execution.submit` reads the row of the deployment and the row of the worker, and inserts in a transaction of
its own. On a server, these are six round trips. The statement of this module compares both rows with what this process
has read before, and inserts nothing if one of them differs. Outside of a transaction, it commits by itself.

- MySQL cannot return the primary key. It always takes the long way, and so does SQLite, which has no round trip.
- MariaDB locks the two rows if its isolation level is not READ COMMITTED, which is Django's default.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django.db import connection, transaction

from scheduling.core.deployment import MOST_SECONDS
from scheduling.execution.new_run import OWN, NewRun
from scheduling.execution.params_from_code import Target, text_of_params
from scheduling.execution.row_values import prepared
from scheduling.execution.table_insert import FIELDS
from scheduling.handlers.targets import target_model
from scheduling.models import Deployment, SchedulerExecution
from scheduling.models.deployment import ONLY
from scheduling.processes.guard import Remembered

COLUMNS = sorted(FIELDS, key=lambda field: field.attname in OWN)
"""The columns in the order of the statement's values: first those that all runs of a call share."""

SHARED = len(COLUMNS) - len(OWN)


def is_supported() -> bool:
    """Whether `insert_directly` can insert on this database."""
    return connection.vendor == "postgresql" or (
        connection.vendor == "mysql"
        and getattr(connection, "isolation_level", None) == "read committed"
        and getattr(connection, "mysql_is_mariadb", False)
    )


def insert_directly(new: NewRun, shared: Mapping[str, Any], target: Target, remembered: Remembered) -> int | None:
    """Insert the row, and set its primary key.

    Args:
        shared: see `shared_columns`.
        target: the row of the worker as it was read before.
        remembered: the row of the deployment as it was read before.

    Returns:
        The worked seconds of the deployment's row, for `Guard.found`. None if one of the rows differs; then nothing is
        inserted.
    """
    values = [prepared(field, shared[field.attname]) for field in COLUMNS[:SHARED]]
    values += [prepared(field, getattr(new, field.attname)) for field in COLUMNS[SHARED:]]
    values += [ONLY, remembered.timeline, remembered.name, remembered.fingerprints, remembered.worked]
    values += [target.pk, new.target_name, target.text]
    # As `Model.save` does: in a transaction of the caller, an error must not let the caller commit the rest.
    with transaction.mark_for_rollback_on_error(connection.alias), connection.cursor() as cursor:
        cursor.execute(_statement(connection.vendor), values)
        found = cursor.fetchone()
    if found is None:
        return None
    new.id, worked = found
    return int(worked)


@lru_cache(maxsize=2)
def _statement(vendor: str) -> str:
    quote = connection.ops.quote_name
    columns = ", ".join(quote(str(field.column)) for field in COLUMNS)
    deployment, worker = (quote(model._meta.db_table) for model in (Deployment, target_model("worker")))
    # MariaDB would compare texts without case, accents and spaces at the end.
    same = "BINARY {} = BINARY %s" if vendor == "mysql" else "{} = %s"
    where = [
        "d.id = %s", *(same.format(f"d.{name}") for name in ("timeline", "name", "fingerprints")), "d.held_at IS NULL",
        f"d.worked >= %s AND d.worked < {MOST_SECONDS}",
        "w.id = %s", same.format("w.name"), same.format(text_of_params(vendor, "w")),
    ]  # fmt: skip
    return (
        f"INSERT INTO {quote(SchedulerExecution._meta.db_table)} ({columns}) "  # noqa: S608 (names of columns)
        f"SELECT {', '.join(['%s'] * len(COLUMNS))} FROM {deployment} d, {worker} w WHERE {' AND '.join(where)} "
        f"RETURNING {quote('id')}, (SELECT d.worked FROM {deployment} d WHERE d.id = {ONLY})"
    )
