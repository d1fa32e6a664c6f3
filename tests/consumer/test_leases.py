"""A consumer finds out which of its runs it has lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from scheduling.consumer.leases import look
from scheduling.models import SchedulerExecution
from scheduling.processes.identity import container_id
from tests.factories import SchedulerExecutionFactory

pytestmark = pytest.mark.django_db


def running(row: SchedulerExecution, key: str) -> Any:
    message = SimpleNamespace(attempt=row.attempt, execution_key=key)
    return SimpleNamespace(execution_id=row.pk, fenced=False, verdict=None, delivery=SimpleNamespace(message=message))


def row() -> SchedulerExecution:
    return SchedulerExecutionFactory(state="running", attempt=1, consumer=container_id(), execution_key="cron-7-1")


@pytest.mark.parametrize(("key", "is_lost"), [("cron-7-1", False), ("", False), ("cron-9-4", True)])
def test_a_row_with_another_key_is_another_run(key: str, is_lost: bool) -> None:
    assert [found.lost for found in look([running(row(), key)])] == [True] * is_lost


def test_a_run_whose_row_is_gone_is_lost() -> None:
    gone = row()
    run = running(gone, "cron-7-1")
    gone.delete()
    assert [found.lost for found in look([run])] == [True]
