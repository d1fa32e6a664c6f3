"""Starts the attempt of a message with one statement, if the message says exactly what the row says.

Almost all messages are of this kind. All other messages take two statements (`consumer.start`): one reads the row, and
one starts the attempt. On a database server the second round trip costs a tenth of the throughput.

- PostgreSQL returns the row that the statement has changed. So the run's values are the row's.
- MariaDB cannot return it. So the statement compares all values of the message with the row, text by its bytes.
- MySQL compares JSON numbers by value (1 is 1.0), and SQLite has no round trip. They always take two statements.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import connection

from scheduling.core.messages import TaskMessage
from scheduling.execution.message_rows import row_of, selected_columns
from scheduling.execution.transitions import adapted, start_clause, start_values, waits
from scheduling.models import SchedulerExecution
from scheduling.models.execution import message_of

COMPARED = ("execution_key", "type", "trigger")
"""Text columns. MariaDB would compare them without case, accents and spaces at the end."""


def is_supported() -> bool:
    """Whether `start_directly` can start attempts on this database."""
    return connection.vendor == "postgresql" or (
        connection.vendor == "mysql" and getattr(connection, "mysql_is_mariadb", False)
    )


def start_directly(message: TaskMessage, consumer: str, now: datetime, lease_until: datetime) -> TaskMessage | None:
    """Start the attempt that the message asks for.

    Returns:
        The message with the row's values, if the attempt was started. None if the message says something else than the
        row, if it is a copy, or if the execution does not wait.
    """
    set_values = start_values(message.attempt, consumer, now, lease_until)
    values = [message.execution_id, message.attempt - 1, message.execution_key, message.type, message.id]
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(_statement("postgresql"), [*set_values, *values, adapted(now)])
            found = cursor.fetchone()
        if found is None:
            return None
        row = row_of(found)
        return message_of(row._replace(attempt=row.attempt - 1))
    params: Any = SchedulerExecution._meta.get_field("params")
    values += [message.trigger, message.scheduler_id, message.group_id, message.attempt - 1 - message.retry_count]
    values += [adapted(message.scheduled_at), params.get_db_prep_save(message.params, connection)]
    headers: Any = SchedulerExecution._meta.get_field("headers")
    values.append(headers.get_db_prep_save(message.headers, connection) if message.headers else None)
    values.append(adapted(now))
    with connection.cursor() as cursor:
        cursor.execute(_statement("mariadb"), [*set_values, *values])
        return message if cursor.rowcount == 1 else None


@lru_cache(maxsize=2)
def _statement(database: str) -> str:
    quote = connection.ops.quote_name
    column = {field.name: quote(str(field.column)) for field in SchedulerExecution._meta.concrete_fields}
    bytewise = " COLLATE utf8mb4_bin" if database == "mariadb" else ""
    texts = {name: f"{column[name]} = %s{bytewise}" for name in COMPARED}
    where = [
        f"{column['id']} = %s", f"{column['attempt']} = %s", texts["execution_key"], texts["type"],
        f"{column['target_id']} = %s",
    ]  # fmt: skip
    end = f" RETURNING {selected_columns()}"
    if database == "mariadb":
        where += [texts["trigger"], f"{column['scheduler']} <=> %s", f"{column['group']} <=> %s"]
        where += [f"{column['retry_base']} = %s"]
        where += [f"{column['scheduled_at']} = %s", f"{column['params']} = %s", f"{column['headers']} <=> %s"]
        end = ""
    return f"{start_clause()} WHERE {' AND '.join(where)} AND {waits()}{end}"
