"""A running execution is compared honestly: with few runs, one bad night does not become usual."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone as clock

from tests.factories import SchedulerExecutionFactory, SchedulerFactory

Context = Callable[[str], dict[str, Any]]

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(("minutes", "late"), [(3, False), (5, True)])
def test_one_long_run_among_few_does_not_become_usual(context: Context, minutes: int, late: bool) -> None:
    row, now = SchedulerFactory(), clock.now()
    for length in (2, 2, 2, 13):
        started = now - timedelta(minutes=length)
        SchedulerExecutionFactory(scheduler=row, succeeded=True, started_at=started, finished_at=now)
    SchedulerExecutionFactory(scheduler=row, running=True, started_at=now - timedelta(minutes=minutes))
    [line] = context("running")["lines"]
    assert (line["usual"], line["late"]) == ("2 min", late)
    assert f"{minutes} min, usually 2 min" in line["meter"]
