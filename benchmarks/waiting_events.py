"""Inserts many events that wait for their time, by statements that double the rows."""

from __future__ import annotations

import time
from datetime import UTC, datetime

LATER = datetime(2096, 1, 1, tzinfo=UTC)
"""The first event is due then, and each further one a second later."""

TOPICS = 20

_LATER_BY = {
    "sqlite": "strftime('%%Y-%%m-%%d %%H:%%M:%%S', {column}, '+{seconds} seconds')",
    "mysql": "{column} + INTERVAL {seconds} SECOND",
    "postgresql": "{column} + INTERVAL '{seconds} seconds'",
}
_METADATA = {
    "sqlite": "json_object('customer', id)",
    "mysql": "json_object('customer', id)",
    "postgresql": "jsonb_build_object('customer', id)",
}


def fill(waiting: int) -> None:
    """Insert `waiting` events. The state of their executions is the one that `schedule_at` gives them with this broker.

    The tables are analyzed at the end, as a server does by itself after a while. An SQLite file never is.
    """
    from django.db import connection, transaction

    from scheduling.api import schedule_at
    from scheduling.models import Event, SchedulerExecution

    begin = time.monotonic()
    first = schedule_at("bench.topic", LATER, payload={"number": 1}, metadata={"customer": 1}).id
    Event.objects.filter(pk=first).delete()
    table, events = SchedulerExecution._meta.db_table, Event._meta.db_table
    fields = [field.column for field in SchedulerExecution._meta.concrete_fields if not field.primary_key]
    quoted = ", ".join(map(connection.ops.quote_name, fields))
    count = 1
    with connection.cursor() as cursor:
        while count < waiting:
            changed = {
                "execution_key": _text("'code-bench-'", f"id + {count}"),
                "scheduled_at": _later_by("scheduled_at", count),
                "wake_at": _later_by("wake_at", count),
            }
            values = ", ".join(changed.get(name, connection.ops.quote_name(name)) for name in fields)
            more = min(count, waiting - count)
            with transaction.atomic():
                cursor.execute(
                    f"INSERT INTO {table} ({quoted}) SELECT {values} FROM {table} WHERE id >= %s ORDER BY id LIMIT %s",
                    [first, more],
                )
            count += more
        with transaction.atomic():
            cursor.execute(
                f"INSERT INTO {events} (execution_id, topic, metadata)"
                f" SELECT id, {_text(repr('bench.topic'), f'id %% {TOPICS}')}, {_METADATA[connection.vendor]}"
                f" FROM {table} WHERE id >= %s",
                [first],
            )
        if connection.vendor != "sqlite":
            cursor.execute("ANALYZE" if connection.vendor == "postgresql" else f"ANALYZE TABLE {table}, {events}")
    print(f"{count:,} events made in {time.monotonic() - begin:.0f} s", flush=True)


def clear() -> None:
    """Delete all events with their executions."""
    from benchmarks import history
    from scheduling.models import Event

    Event.objects.all()._raw_delete("default")
    history.clear()


def _text(prefix: str, number: str) -> str:
    from django.db import connection

    if connection.vendor == "mysql":
        return f"CONCAT({prefix}, {number})"
    return f"{prefix} || CAST({number} AS VARCHAR(20))"


def _later_by(column: str, seconds: int) -> str:
    from django.db import connection

    return _LATER_BY[connection.vendor].format(column=column, seconds=seconds)
