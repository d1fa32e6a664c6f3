"""Measures the sweep for lost messages beside a long queue."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from benchmarks.wipe import wipe

AT_ONCE = 1_000


def sweep_ms(count: int) -> list[float]:
    """Measure the milliseconds of each sweep until `count` rows that wait are counted. All of them have a message."""
    from scheduling.broker import get_broker
    from scheduling.core.messages import TaskMessage
    from scheduling.producer.lost_messages import SLICE, LostMessages

    keys = fill(count)
    broker = get_broker()
    broker.declare()
    now = datetime.now(UTC)
    for at in range(0, count, AT_ONCE):
        messages = [
            TaskMessage("worker", 1, execution_id=key, execution_key=f"bench-{key}", scheduled_at=now)
            for key in keys[at : at + AT_ONCE]
        ]
        assert len(broker.publish(messages)) == len(messages)
    lost, taken = LostMessages(), []
    for _ in range(count // SLICE + 2):
        begin = time.perf_counter()
        assert lost.sweep(broker, datetime.now(UTC)) == 0
        taken.append((time.perf_counter() - begin) * 1000)
    broker.close()
    wipe()
    return taken


def fill(count: int) -> list[int]:
    """Make sure that there are exactly `count` executions, all queued. Returns their keys, the oldest first."""
    from django.db import connection

    from benchmarks.history import clear
    from scheduling.models import SchedulerExecution
    from tests.factories import ManualExecutionFactory, SchedulerFactory

    rows = SchedulerExecution.objects.filter(state="queued")
    if not rows.count() == SchedulerExecution.objects.count() == count:
        clear()
        schedule = SchedulerFactory(rare=True)
        seed = ManualExecutionFactory.bulk(min(count, AT_ONCE), scheduler=schedule, state="queued")
        now = datetime.now(UTC)
        for number, row in enumerate(seed):
            row.wake_at = now - timedelta(seconds=number + 60)
        SchedulerExecution.objects.bulk_update(seed, ["wake_at"])
        table, quote = SchedulerExecution._meta.db_table, connection.ops.quote_name
        names = [str(field.column) for field in SchedulerExecution._meta.concrete_fields]
        copied = ", ".join(quote(name) for name in names if name not in ("id", "execution_key"))
        with connection.cursor() as cursor:
            for at in range(AT_ONCE, count, AT_ONCE):
                key = f"CONCAT('copy-{at}-', id)" if connection.vendor == "mysql" else f"'copy-{at}-' || id"
                cursor.execute(
                    f"INSERT INTO {table} ({copied}, execution_key) SELECT {copied}, {key} FROM {table}"
                    f" WHERE id >= {seed[0].pk} ORDER BY id LIMIT {min(AT_ONCE, count - at)}"
                )
            cursor.execute(f"ANALYZE TABLE {table}" if connection.vendor == "mysql" else f"ANALYZE {table}")
    return list(rows.order_by("wake_at", "pk").values_list("pk", flat=True))


def mean_ms(count: int) -> float:
    """The mean of the sweeps."""
    taken = sweep_ms(count)
    return sum(taken) / len(taken)


def slowest_ms(count: int) -> float:
    """The slowest of the sweeps."""
    return max(sweep_ms(count))
