"""Tests of the part "Next 24 hours", and of the list of the runs of one hour."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone as clock

from scheduling.admin.dashboard import next_day
from scheduling.models import Scheduler
from tests.admin.dashboard.conftest import PAGE, address
from tests.factories import ProcessFactory, SchedulerExecutionFactory, SchedulerFactory, due

Context = Callable[[str], dict[str, Any]]


def hourly(**values: Any) -> Scheduler:
    """A schedule that falls due in each hour, first within the next hour."""
    return due(SchedulerFactory(schedule="30 * * * *", **values), clock.now() + timedelta(minutes=1))


def test_each_hour_has_a_bar_with_the_number_of_its_runs(viewer: Client, context: Context) -> None:
    hourly()
    hourly()
    part = context("next_day")
    assert part["total"] in (46, 48, 50)  # the first hour has begun, and the last one ends with a full hour
    page = viewer.get(address("next_day")).content.decode()
    assert len(re.findall(r': 2 runs"', page)) >= 23
    assert len(re.findall(r"/dashboard/hour/\d+/", page)) >= 23


def test_the_work_is_compared_with_the_slots(viewer: Client) -> None:
    row = hourly()
    now = clock.now()
    for _run in range(3):
        SchedulerExecutionFactory(
            scheduler=row, succeeded=True, started_at=now - timedelta(minutes=130), finished_at=now
        )
    page = viewer.get(address("next_day")).content.decode()
    assert "about 130 minutes" in page
    assert "dash-hour-full" not in page
    ProcessFactory(concurrency=1)
    page = viewer.get(address("next_day")).content.decode()
    assert "about 130 minutes of work, room for 60" in page
    assert "dash-hour-full" in page
    ProcessFactory(concurrency=3)
    assert "about 130 minutes of work, room for 240" in viewer.get(address("next_day")).content.decode()


def test_many_schedules_are_counted_without_their_durations(
    viewer: Client, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(next_day, "TIMED_SCHEDULES", 1)
    monkeypatch.setattr(next_day, "COUNTED_TIMES", 2)
    for minute in (30, 30, 31, 32):
        Scheduler.objects.filter(pk=hourly().pk).update(schedule=f"{minute} * * * *")
    part = context("next_day")
    assert (part["timed"], part["most"]) == (False, 2)
    monkeypatch.setattr(next_day, "COUNTED_TIMES", 3)
    part = context("next_day")
    assert part["most"] == 0
    assert 4 * 23 <= part["total"] <= 4 * 25
    page = viewer.get(address("next_day")).content.decode()
    assert "room for" not in page
    left_out = "The expected busy minutes are left out: there are more than {} schedules."
    assert left_out.format(1) in page
    monkeypatch.setattr(next_day, "TIMED_SCHEDULES", 4)
    assert "left out" not in viewer.get(address("next_day")).content.decode()


def test_dates_and_rows_that_plain_sql_has_spoilt(context: Context) -> None:
    SchedulerFactory(once=True, date_time=clock.now() + timedelta(hours=5, minutes=1))
    for columns in ({"schedule": "99 * * * *"}, {"timezone": "Mars/Olympus"}):
        Scheduler.objects.filter(pk=hourly().pk).update(**columns)
    SchedulerFactory(off=True)
    assert context("next_day")["total"] == 1


def test_an_hour_lists_its_runs_in_order(viewer: Client) -> None:
    now = clock.now()
    start = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=3)
    late, early = hourly(description="late"), hourly(description="early")
    Scheduler.objects.filter(pk=late.pk).update(schedule="40 * * * *")
    Scheduler.objects.filter(pk=early.pk).update(schedule="10,20 * * * *")
    SchedulerFactory(once=True, description="once", date_time=start + timedelta(minutes=15))
    page = viewer.get(f"{PAGE}hour/{int(start.timestamp())}/").content.decode().split('id="content-main"')[1]
    assert re.findall(r">(late|early|once)<", page) == ["early", "once", "early", "late"]


@pytest.mark.parametrize("seconds", [0, 10**18, 2**63])
def test_an_hour_that_is_not_on_the_page(viewer: Client, seconds: int) -> None:
    assert viewer.get(f"{PAGE}hour/{seconds}/").status_code == 404


def test_an_hour_needs_the_permission_to_see_schedules(watcher: Client, viewer: Client) -> None:
    hourly()
    now = int(clock.now().timestamp())
    assert watcher.get(f"{PAGE}hour/{now}/").status_code == 404
    assert viewer.get(f"{PAGE}hour/{now}/").status_code == 200
    assert "/hour/" not in watcher.get(address("next_day")).content.decode()


def test_nothing_to_come(viewer: Client) -> None:
    assert "Nothing falls due in the next 24 hours." in viewer.get(address("next_day")).content.decode()
