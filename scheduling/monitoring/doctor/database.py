"""Checks whether the database can be reached, is new enough, and has a configuration that suits claims and leases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connections, router
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.migrations.exceptions import InconsistentMigrationHistory
from django.db.migrations.executor import MigrationExecutor
from django.db.utils import NotSupportedError

from scheduling.conf import get_conf
from scheduling.core.clock_skew import Skew
from scheduling.models import Scheduler
from scheduling.monitoring.doctor import sqlite
from scheduling.monitoring.doctor.sqlite import ask
from scheduling.monitoring.findings.finding import Finding, counted, fail, ok, some, warn, words
from scheduling.processes.answer_limit import AnswerLimit
from scheduling.processes.idle_transactions import is_pooled
from scheduling.processes.server_clock import measure

MINIMA = {"MySQL": (8, 0, 11), "MariaDB": (10, 6), "PostgreSQL": (14,), "SQLite": (3, 35)}
"""The oldest version of each database that this app can use. Claims need SKIP LOCKED (except on SQLite), and the table
of schedules needs generated columns. Django also has minimum versions and checks them itself."""

CONNECT_SECONDS, ANSWER_SECONDS = 3, 10


def alias() -> str:
    """The alias of the database that holds the schedules."""
    return router.db_for_write(Scheduler)


@contextmanager
def impatient() -> Iterator[BaseDatabaseWrapper]:
    """Yield the database connection with short limits.

    The connection gets no start-up option and no session variable: behind a pooler, it could keep neither.
    """
    connection = connections[alias()]
    config = connection.settings_dict
    former = dict(config["OPTIONS"])
    if connection.connection is None:
        limit = "timeout" if connection.vendor == "sqlite" else "connect_timeout"
        config["OPTIONS"] = {**former, limit: CONNECT_SECONDS}
    try:
        with AnswerLimit(connection, ANSWER_SECONDS):
            yield connection
    finally:
        config["OPTIONS"] = former


def product(connection: BaseDatabaseWrapper) -> tuple[str, tuple[int, ...]]:
    """The database's product name and version, such as `("PostgreSQL", (15, 3))`."""
    backend: Any = connection
    if connection.vendor == "mysql":
        return ("MariaDB" if backend.mysql_is_mariadb else "MySQL"), tuple(backend.mysql_version)
    if connection.vendor == "postgresql":
        return "PostgreSQL", divmod(backend.pg_version, 10_000)
    if connection.vendor == "sqlite":
        return "SQLite", tuple(backend.Database.sqlite_version_info)
    return connection.vendor, ()


def place(connection: BaseDatabaseWrapper) -> str:
    """Where the database is (file, or host, port and name), without user and password."""
    config = connection.settings_dict
    if connection.vendor == "sqlite":
        return str(config["NAME"])
    port = f":{config['PORT']}" if config["PORT"] else ""
    return f"{config['HOST'] or 'localhost'}{port}/{config['NAME']}"


def unreachable(connection: BaseDatabaseWrapper) -> Finding | None:
    """A finding that says why the database cannot be reached; None if the database answers."""
    if connection.vendor == "sqlite" and (missing := sqlite.missing(connection)):
        return missing
    try:
        connection.ensure_connection()
    except NotSupportedError as error:
        return fail("reachable", f"{place(connection)} is too old: {error}", _newer())
    except (DatabaseError, ImproperlyConfigured) as error:
        advice = "See that it runs and that DATABASE_URL names it; a # or ? in the password must be percent-encoded."
        return fail("reachable", f"{place(connection)} does not answer: {words(error)}", advice)
    return None


def unmigrated(connection: BaseDatabaseWrapper) -> Finding | None:
    """A finding that names missing or inconsistent migrations; None if all migrations are applied."""
    try:
        executor = MigrationExecutor(connection)
        executor.loader.check_consistent_history(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except InconsistentMigrationHistory as error:
        return fail("migrations", str(error), "Restore the missing rows of django_migrations, or the backup.")
    if not plan:
        return None
    names = some(f"{migration.app_label}.{migration.name}" for migration, _backwards in plan)
    return fail("migrations", f"{counted(len(plan), 'migration')} not applied: {names}.", "Run: manage.py migrate")


def examine(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    """Run all checks of the database. The database must answer and be migrated."""
    name, version = product(connection)
    yield _version(name, version, place(connection))
    yield ok("migrations", "All applied.")
    if connection.vendor == "sqlite":
        yield from sqlite.examine(connection)
        return
    yield _skip_locked(connection)
    yield _isolation(connection)
    yield _writable(connection)
    yield from _pooler(connection)
    yield _clock(connection)


def _newer() -> str:
    minima = ", ".join(f"{name} {'.'.join(map(str, version))}" for name, version in MINIMA.items())
    return f"Use {minima} or newer."


def _version(name: str, version: tuple[int, ...], where: str) -> Finding:
    shown = ".".join(map(str, version))
    if name not in MINIMA:
        return warn("version", f"{name} {shown} at {where} has never been tried here.", _newer())
    if version < MINIMA[name]:
        return fail("version", f"{name} {shown} at {where} is too old.", _newer())
    return ok("version", f"{name} {shown} at {where}.")


def _skip_locked(connection: BaseDatabaseWrapper) -> Finding:
    if connection.features.has_select_for_update_skip_locked:
        return ok("skip locked", "Producers and consumers stay out of each other's way.")
    return fail("skip locked", "FOR UPDATE SKIP LOCKED is missing: claims would wait for each other.", _newer())


def _isolation(connection: BaseDatabaseWrapper) -> Finding:
    if connection.vendor == "postgresql":
        level = ask(connection, "SHOW default_transaction_isolation")
    else:
        # The variable is called transaction_isolation in MySQL and newer MariaDB, and tx_isolation in older MariaDB.
        names = "('transaction_isolation', 'tx_isolation')"
        level = ask(connection, f"SHOW SESSION VARIABLES WHERE Variable_name IN {names}")
    level = level.replace("-", " ").upper()
    if level == "READ COMMITTED":
        return ok("isolation", "READ COMMITTED.")
    seen = f"{level}: claims would lock gaps between rows, or fail where another process wrote."
    advice = 'DATABASES: OPTIONS: {"isolation_level": "read committed"}, which is Django\'s default, or leave it out.'
    return fail("isolation", seen, advice)


def _writable(connection: BaseDatabaseWrapper) -> Finding:
    if connection.vendor == "postgresql":
        only = ask(connection, "SHOW default_transaction_read_only") == "on"
        only = only or ask(connection, "SELECT pg_is_in_recovery()")
    else:
        only = str(ask(connection, "SELECT @@global.read_only")).upper() not in {"0", "OFF"}
    if only:
        return fail("writable", "It is read-only: a replica, or a fail-over that is going on.", "Name the primary.")
    return ok("writable", "Yes.")


def _pooler(connection: BaseDatabaseWrapper) -> Iterator[Finding]:
    if connection.vendor != "postgresql" or not is_pooled(connection):
        return
    if connection.settings_dict["DISABLE_SERVER_SIDE_CURSORS"]:
        yield ok("pooler", "Connections go through a pooler, and nothing needs a cursor of the server.")
    else:
        seen = "Connections go through a pooler, and pages and handlers use cursors of the server."
        advice = "Set DISABLE_SERVER_SIDE_CURSORS=true; in DATABASES of a project of your own."
        yield warn("pooler", seen, advice)


def _clock(connection: BaseDatabaseWrapper) -> Finding:
    return judge_clock(measure(connection)[1])


def judge_clock(skew: Skew) -> Finding:
    """A finding about the difference between this host's clock and the database's clock."""
    seen = f"This host's clock is {skew} the database's."
    advice = "Run a time service (chrony, systemd-timesyncd) on every host."
    if skew.certain >= get_conf().clock_limit_seconds:
        return fail("clock", f"{seen} A process here would claim, start and recover nothing.", advice)
    if skew.certain >= get_conf().clock_warn_seconds:
        return warn("clock", seen, advice)
    return ok("clock", f"Within {max(abs(skew.seconds), 0.1):.1f} s of this host's.")
