"""Empty the test database after a transactional test, at a fraction of the price of Django's `flush`.

Django truncates every table and then sends `post_migrate`, which creates all content types, permissions and targets
again. Hardly any test changes these rows, so they stay: only the tables with other rows are emptied. A test that has
changed them pays for Django's own `flush`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from django.contrib.auth.models import Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection, models, transaction

from scheduling.handlers.targets import sync_targets
from scheduling.processes.deployment_row import make_row_if_new

KEPT: tuple[type[models.Model], ...] = (ContentType, Permission)

MOST_BYTES = 4_000_000
"""PostgreSQL deletes row by row, and dead rows remain. Above this size, TRUNCATE is cheaper."""

Rows = dict[str, list[tuple[Any, ...]]]


class Flush:
    """Empties the database. The rows of KEPT are as they were at the first use, right after the migrations."""

    def __init__(self) -> None:
        self._kept = kept_rows()

    def __call__(self) -> None:
        """Leave the rows that `flush` would leave: content types, permissions, targets and the deployment."""
        with transaction.atomic():
            emptied = lock_tables() and kept_rows() == self._kept
            if emptied:
                delete_rows()
        if emptied:
            sync_targets()
            make_row_if_new()
            return
        call_command("flush", verbosity=0, interactive=False, reset_sequences=False, allow_cascade=False)
        self._kept = kept_rows()


def kept_rows() -> Rows:
    return {model._meta.label: list(model._base_manager.order_by("pk").values_list()) for model in KEPT}


@cache
def tables() -> tuple[str, ...]:
    """The quoted names of the tables that are emptied, those of all many-to-many relations among them."""
    kept = {model._meta.db_table for model in KEPT}
    found = connection.introspection.django_table_names(only_existing=True, include_views=False)
    return tuple(connection.ops.quote_name(name) for name in sorted(found) if name not in kept)


def lock_tables() -> bool:
    """Wait for the transactions of killed processes, as TRUNCATE does. Returns whether DELETE is the cheaper way."""
    if connection.vendor != "postgresql":
        return True
    with connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {', '.join(tables())} IN ACCESS EXCLUSIVE MODE")
        names = ", ".join(f"('{name}')" for name in tables())
        cursor.execute(f"SELECT sum(pg_relation_size(name::regclass)) FROM (VALUES {names}) AS t (name)")
        return bool(cursor.fetchone()[0] < MOST_BYTES)


def delete_rows() -> None:
    """Delete all rows of `tables`. Foreign keys are checked at the end, or not at all (MariaDB, MySQL)."""
    with connection.constraint_checks_disabled(), connection.cursor() as cursor:
        for table in with_rows(cursor):
            cursor.execute(f"DELETE FROM {table}")


def with_rows(cursor: Any) -> tuple[str, ...]:
    if connection.vendor == "mysql":  # its DELETE also waits for rows that are not committed yet
        return tables()
    looks = " UNION ALL ".join(f"SELECT '{name}' WHERE EXISTS (SELECT 1 FROM {name})" for name in tables())
    cursor.execute(looks)
    return tuple(row[0] for row in cursor.fetchall())
