"""Tests of the rows that a consumer compares with its messages."""

from __future__ import annotations

import pytest
from django.db import connection

from scheduling.execution.message_rows import message_rows
from scheduling.models import SchedulerExecution
from scheduling.models.execution import message_of
from tests.factories import SchedulerExecutionFactory

pytestmark = pytest.mark.django_db


def test_each_column_is_what_the_orm_reads() -> None:
    """Instants, JSON and NULL are converted on each database, and the message is the same."""
    made = [
        SchedulerExecutionFactory(params={"b": [1, {"c": None}], "a": "ä"}),
        SchedulerExecutionFactory(scheduler=None, params={}),
    ]
    rows = message_rows([row.pk for row in made])
    assert set(rows) == {row.pk for row in made}
    for pk, row in rows.items():
        stored = SchedulerExecution.objects.get(pk=pk)
        assert row._asdict() == {name: getattr(stored, name) for name in row._fields}
        assert message_of(row) == message_of(stored)


def test_an_id_without_a_row_is_left_out() -> None:
    row = SchedulerExecutionFactory()
    assert list(message_rows([row.pk, row.pk + 1, 2**62])) == [row.pk]


def test_rows_are_read_with_one_query(django_assert_num_queries) -> None:
    ids = [SchedulerExecutionFactory().pk for _number in range(3)]
    with django_assert_num_queries(1):
        assert len(message_rows(ids)) == 3


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="only SQLite stores any type in any column")
def test_an_instant_that_is_none_is_an_error_of_the_row() -> None:
    """The other databases refuse to store such an instant."""
    row = SchedulerExecutionFactory()
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {SchedulerExecution._meta.db_table} SET wake_at = '2026-13-01 00:00:00' WHERE id = {row.pk}"
        )
    with pytest.raises(ValueError, match="month"):
        message_rows([row.pk])
