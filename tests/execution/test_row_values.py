"""Rows that the statement of `execution.row_values` inserts equal the rows that Django's `bulk_create` inserts."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, models, transaction

from scheduling.execution.insert import insert
from scheduling.execution.row_values import insert_instances
from scheduling.execution.table_insert import FIELDS
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.processes.identity import container_id
from tests.factories import SchedulerFactory
from tests.hostile.fuzz import choose_seed
from tests.support import at_once

pytestmark = [pytest.mark.django_db, pytest.mark.database]

TEXTS = ("", "Ä %s \\ \" ' 日本 😀", "{}", "null", "\n\t", "%(x)s", "x" * 30, "-1", "1e400", "';--")
JSONS: tuple[Any, ...] = ({}, {"a": [1, None, True, "%s"]}, {"ü": {"b": 1.5}}, {"x": "\\u0000 \\ ' \""}, {"n": None})


def _text(field: Any, chance: random.Random, number: int) -> str:
    if field.unique:
        return f"unique {number}"
    return str(chance.choice(field.choices)[0]) if field.choices else chance.choice(TEXTS)[: field.max_length]


def _value(field: Any, chance: random.Random, number: int) -> Any:
    match field:
        case models.JSONField():
            return chance.choice(JSONS)
        case models.CharField() | models.TextField():
            return _text(field, chance, number)
        case models.BooleanField():
            return chance.random() < 0.5
        case models.DateTimeField():
            return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(microseconds=chance.randrange(10**15))
        case _:
            return chance.choice((0, 1, 7, 32767))


def _columns(chance: random.Random, number: int) -> dict[str, Any]:
    """Values of all columns but the keys. A third of those that may be null are, and there is no second schedule."""
    return {
        field.attname: None
        if field.null and (field.is_relation or chance.random() < 0.3)
        else _value(field, chance, number)
        for field in FIELDS
    }


def _made(seed: int, schedule: Scheduler, count: int, first: int) -> list[SchedulerExecution]:
    chance = random.Random(seed)
    return [
        SchedulerExecution(
            **_columns(chance, first + n) | {"scheduler_id": schedule.pk, "execution_key": f"key-{first + n}"}
        )
        for n in range(count)
    ]


def _claimed(seed: int, schedule: Scheduler, count: int) -> list[SchedulerExecution]:
    """Rows with the columns that all rows of one claim have in common."""
    rows, now = _made(seed, schedule, count, 0), datetime.now(UTC)
    for row in rows:
        row.container_id, row.executed_at = container_id(), now
    return rows


@pytest.mark.parametrize("count", [1, 2, 30, 600])
def test_rows_equal_those_of_bulk_create(count: int) -> None:
    own, other = SchedulerFactory(rare=True), SchedulerFactory(rare=True)
    seed = int(choose_seed()) + count
    rows = _made(seed, own, count, 0)
    insert_instances(rows)
    by_django = _made(seed, other, count, 0)
    for row in by_django:
        row.key = None if row.key is None else f"other {row.key}"
    SchedulerExecution.objects.bulk_create(by_django)
    for key in (f"key-{n}" for n in range(count)):
        ours, theirs = (SchedulerExecution.objects.get(scheduler=one, execution_key=key) for one in (own, other))
        for field in FIELDS:
            if field.attname not in ("scheduler_id", "key"):
                assert getattr(ours, field.attname) == getattr(theirs, field.attname), (seed, field.attname)
        assert (ours.key is None) == (theirs.key is None)
    stored = {row.execution_key: row.pk for row in SchedulerExecution.objects.filter(scheduler=own)}
    assert all(row.pk in (None, stored[row.execution_key]) for row in rows)  # MySQL does not tell the keys
    assert not any(row._state.adding for row in rows)


def test_one_key_that_is_on_record_refuses_all() -> None:
    schedule = SchedulerFactory(rare=True)
    insert_instances(_made(1, schedule, 1, 0))
    with pytest.raises(IntegrityError):
        insert_instances(_made(2, schedule, 40, 0))


@pytest.mark.skipif(connection.vendor != "mysql", reason="the snapshot of other databases does not tell the row")
@pytest.mark.django_db(transaction=True)
def test_a_clash_is_known_although_the_snapshot_is_older() -> None:
    """Another claim commits the row after this transaction's first look, which REPEATABLE READ repeats."""
    schedule = SchedulerFactory(rare=True)
    with connection.cursor() as cursor:
        cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    try:
        with transaction.atomic():
            assert not SchedulerExecution.objects.exists()
            at_once([lambda: insert(_claimed(1, schedule, 1))])
            inserted = insert(_claimed(2, schedule, 2))
    except OperationalError:  # MariaDB, with snapshot isolation: the caller begins anew
        inserted = insert(_claimed(2, schedule, 2))
    finally:
        connection.close()
    assert [row.execution_key for row in inserted] == ["key-1"]
