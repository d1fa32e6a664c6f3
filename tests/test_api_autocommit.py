"""A connection without autocommit commits when the caller says so. A run is published after that, and not before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction

from scheduling.api import run
from scheduling.execution import submit
from scheduling.models import SchedulerExecution

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The runs that were published."""
    found: list[int] = []
    monkeypatch.setattr(submit, "_publish", lambda rows, *_args, **_options: found.extend(row.id for row in rows))
    return found


@pytest.fixture
def without_autocommit(published: list[int]) -> Iterator[None]:
    """Let this process know what a single statement needs, then switch autocommit off."""
    if connection.vendor == "sqlite":
        pytest.skip("Django documents that SQLite without autocommit commits at each savepoint")
    run("tests.mark")
    published.clear()
    transaction.set_autocommit(False)
    try:
        yield
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)


@pytest.mark.usefixtures("without_autocommit")
def test_a_run_that_is_rolled_back_never_was(published: list[int]) -> None:
    made = run("tests.mark").id
    transaction.rollback()
    transaction.set_autocommit(True)
    assert not SchedulerExecution.objects.filter(pk=made).exists()
    assert published == []


@pytest.mark.usefixtures("without_autocommit")
def test_a_run_is_published_after_the_commit(published: list[int]) -> None:
    made = run("tests.mark").id
    assert published == []
    transaction.commit()
    transaction.set_autocommit(True)
    assert SchedulerExecution.objects.filter(pk=made).exists()
    assert published == [made]


def test_with_autocommit_a_run_is_published_at_once(published: list[Any]) -> None:
    assert [run("tests.mark").id for _ in range(2)] == published
