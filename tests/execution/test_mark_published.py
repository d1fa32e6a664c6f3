"""With PostgreSQL, marking a row as published does not wait for the disk. The commit of a caller always waits."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection, transaction
from django.utils import timezone as clock

from scheduling.execution.publish import mark_published
from scheduling.models import SchedulerExecution
from tests.factories import ManualExecutionFactory

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def commit_setting() -> Callable[[], str]:
    """Provide a function that reads PostgreSQL's setting, which is on at first."""
    if connection.vendor != "postgresql":
        pytest.skip("only PostgreSQL has this setting")

    def read() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SELECT current_setting('synchronous_commit')")
            return str(cursor.fetchone()[0])

    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit TO on")
    return read


def mark_and_note_setting() -> str:
    """Mark a claimed row. Returns the setting inside of the statement, after the row was marked."""
    row = ManualExecutionFactory(state="claimed", published_at=None)
    seen: list[str] = []

    def look(execute: Callable[..., object], sql: str, params: object, many: bool, context: object) -> object:
        returning = f"{sql} RETURNING current_setting('synchronous_commit')"
        result = execute(returning, params, many, context)
        seen.append(context["cursor"].fetchone()[0])  # type: ignore[index]
        return result

    with connection.execute_wrapper(look):
        assert mark_published([row.pk], clock.now()) == 1
    assert SchedulerExecution.objects.get(pk=row.pk).state == "queued"
    return seen[0]


def test_the_mark_does_not_wait_for_the_disk(commit_setting: Callable[[], str]) -> None:
    assert mark_and_note_setting() == "off"
    assert commit_setting() == "on"


def test_the_commit_of_a_caller_waits(commit_setting: Callable[[], str]) -> None:
    with transaction.atomic():
        assert mark_and_note_setting() == "on"
        assert commit_setting() == "on"
    assert commit_setting() == "on"


def test_the_mark_of_a_connection_without_autocommit_waits(commit_setting: Callable[[], str]) -> None:
    transaction.set_autocommit(False)
    try:
        assert mark_and_note_setting() == "on"
        connection.commit()
    finally:
        connection.rollback()
        transaction.set_autocommit(True)
