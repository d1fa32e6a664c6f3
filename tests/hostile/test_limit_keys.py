"""A `used_at` of a limit's key that plain SQL has written stops no start: it is read as unknown, and written anew."""

from __future__ import annotations

from datetime import datetime

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone as clock

from scheduling.core.run_limit import Limit
from scheduling.execution.places import Limited, LimitedAttempt, take_places
from scheduling.models import LimitKey, LimitPlace
from tests.factories import SchedulerExecutionFactory
from tests.hostile.atoms import INSTANTS, NUMBERS, TEXTS

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

RULES = Limit(at_once=1_000, key="region")
FURTHER = ("-infinity", "infinity", "294276-12-31 23:59:59+00", "0044-03-15 00:00:00+00 BC")


def start(*keys: str) -> set[str]:
    """Start a run with each key in one turn of a consumer. Returns why they wait; an empty text: they do not."""
    runs = [(SchedulerExecutionFactory().pk, Limited("worker", "tests.one_of_each_key", key, RULES)) for key in keys]
    return set(take_places([LimitedAttempt(pk, 1, limited) for pk, limited in runs], clock.now()).reasons.values())


def write(value: object, key: str) -> bool:
    """Write a value by plain SQL; returns whether the server has taken it."""
    table = LimitKey._meta.db_table
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"UPDATE {table} SET used_at = %s WHERE {connection.ops.quote_name('key')} = %s",
                           [value, key])  # fmt: skip
    except (DatabaseError, ValueError, TypeError, OverflowError):
        return False
    return True


@pytest.mark.long
def test_a_start_takes_a_place_of_a_key_with_any_time_of_its_last_use() -> None:
    assert start("eu", "us") == {""}
    taken = 0
    for value in (*FURTHER, *INSTANTS, *TEXTS, *NUMBERS):
        if not write(value, "eu"):
            continue
        taken += 1
        assert start("us", "eu") == {""}, repr(value)
    assert taken
    row = LimitKey.objects.get(key="eu")
    assert isinstance(row.used_at, datetime)
    assert not LimitPlace.objects.exclude(state="held").exists()
