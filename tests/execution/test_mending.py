"""A schedule that was set aside goes on after it is mended, without a restart and without a save."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from unittest.mock import patch

import pytest
from django.db import connection
from django.utils import timezone as clock

from scheduling.execution import mending
from scheduling.execution.claim import claim_due
from scheduling.execution.mending import Mending
from scheduling.execution.planning import set_aside
from scheduling.models import Scheduler, SchedulerExecution
from tests.factories import SchedulerFactory, due

pytestmark = pytest.mark.django_db(transaction=True)


def write(pk: int, column: str, value: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {Scheduler._meta.db_table} SET {column} = %s WHERE id = %s", [value, pk])


def test_params_that_are_mended_by_sql_bring_the_schedule_back() -> None:
    now = clock.now()
    row = due(SchedulerFactory(schedule="* * * * *"), now - timedelta(seconds=90))
    write(row.pk, "params", "null")
    assert claim_due(now, embedded=True).broken == 1
    turns = Mending()
    assert turns.turn(now) == 0  # still broken
    row.refresh_from_db()
    assert row.next_run_at is None
    assert row.plan_error
    write(row.pk, "params", '{"a": 1}')
    assert turns.turn(now) == 1
    row.refresh_from_db()
    assert row.plan_error == ""
    assert row.next_run_at is not None
    assert now < row.next_run_at <= now + timedelta(minutes=1)
    assert not SchedulerExecution.objects.exists()  # the try is taken back
    assert len(claim_due(row.next_run_at, embedded=True).claimed) == 1


def test_a_schedule_that_is_off_stays_off() -> None:
    row = SchedulerFactory(off=True)
    set_aside(row.pk, ValueError("broken"), clock.now())
    assert Mending().turn(clock.now()) == 0


@pytest.fixture
def two_a_turn() -> Iterator[None]:
    with patch.object(mending, "ROWS_PER_TURN", 2):
        yield


@pytest.mark.usefixtures("two_a_turn")
def test_broken_schedules_do_not_hide_a_mended_one() -> None:
    rows = [SchedulerFactory() for _number in range(5)]
    for row in rows:
        set_aside(row.pk, ValueError("broken"), clock.now())
        write(row.pk, "params", "null")
    write(rows[4].pk, "params", "{}")
    turns = Mending()
    assert [turns.turn(clock.now()) for _number in range(4)] == [0, 0, 1, 0]


def test_a_schedule_that_a_save_has_mended_meanwhile_is_left_alone() -> None:
    """The producer has read the keys of the schedules that are set aside, and then a user has mended and paused one."""
    now = clock.now()
    row = due(SchedulerFactory(schedule="* * * * *"), now - timedelta(seconds=90))
    write(row.pk, "params", "null")
    assert claim_due(now, embedded=True).broken == 1
    write(row.pk, "params", "{}")
    row = Scheduler.objects.get()
    row.schedule = "0 0 1 1 *"
    row.save()
    planned = row.next_run_at
    assert not mending._mend(row.pk, now + timedelta(days=900))
    row.refresh_from_db()
    assert (row.next_run_at, row.plan_error) == (planned, "")
