"""Looks whether `migrate` has ever made the tables."""

from __future__ import annotations

from django.core.management.base import CommandError
from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, connections

from scheduling.conf import Conf
from scheduling.models import Scheduler
from scheduling.processes.answer_limit import AnswerLimit


def must_have_tables(conf: Conf) -> None:
    """End this command if the database has none of our tables.

    To wait would not help: only `migrate` makes them. A database that does not answer is left to the command, which
    waits for it. So is a database whose tables are older than the code, because then `migrate` is on its way.

    Raises:
        CommandError: `migrate` has never run.
    """
    connection = connections[DEFAULT_DB_ALIAS]
    try:
        with AnswerLimit(connection, conf.lease_seconds):
            missing = Scheduler._meta.db_table not in connection.introspection.table_names()
    except (DatabaseError, InterfaceError, OSError):
        connection.close()
        return
    if missing:
        connection.close()
        raise CommandError("The database has no tables of this app yet. Run: manage.py migrate")
