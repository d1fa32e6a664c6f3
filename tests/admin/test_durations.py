"""How long runs took: in the list, in bars and on pages, and the filters and the order of the list."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.admin.executions import duration
from scheduling.admin.executions.filters import DurationFilter
from scheduling.admin.executions.spans import last_night
from scheduling.models import Attempt, Scheduler, SchedulerExecution
from tests.admin.scheduler_form import overview
from tests.factories import AttemptFactory, ReminderFactory, SchedulerExecutionFactory, SchedulerFactory

pytestmark = pytest.mark.django_db

LIST = reverse("admin:scheduling_schedulerexecution_changelist")


def ran(row: Scheduler, seconds: float, ago: timedelta = timedelta(hours=1), **columns: Any) -> SchedulerExecution:
    """Return an execution that started some time ago and took some seconds."""
    at = clock.now() - ago
    usual = {"scheduled_at": at, "executed_at": at, "started_at": at, "finished_at": at + timedelta(seconds=seconds)}
    made: SchedulerExecution = SchedulerExecutionFactory(
        scheduler=row, attempt=1, **(usual | {"succeeded": True} | columns)
    )
    return made


def discarded(row: Scheduler) -> SchedulerExecution:
    """Return an execution that failed after 4 ms and was discarded 98 seconds later."""
    made = ran(row, 98.004, succeeded=False, discarded=True)
    assert made.started_at is not None
    end = made.started_at + timedelta(milliseconds=4)
    AttemptFactory(execution=made, number=1, started_at=made.started_at, finished_at=end)
    return made


@pytest.fixture
def slow() -> SchedulerExecution:
    """A run of 12 min 18 s. The other runs of its schedule took 2 min 3 s."""
    row = SchedulerFactory()
    for _number in range(6):
        ran(row, 123)
    return ran(row, 738)


def found(client: Client, **query: Any) -> list[int]:
    return [row.pk for row in client.get(LIST, query).context["cl"].result_list]


def place_of(client: Client) -> int:
    """Return the number of the column with the duration, as the parameter `o` has it."""
    return list(client.get(LIST).context["cl"].list_display).index("started_column")


def test_the_duration_of_a_discarded_run_is_that_of_its_attempt(viewer: Client) -> None:
    row = SchedulerFactory()
    made = discarded(row)
    said = "4 ms, discarded after 1 min 38 s"
    assert said in viewer.get(LIST).content.decode()
    page = viewer.get(overview(row)).content.decode()
    assert f'<td class="sch-number">{said}</td>' in page
    assert f": discarded, {said}</title>" in page
    one = viewer.get(reverse("admin:scheduling_schedulerexecution_change", args=[made.pk]))
    assert ("Duration", "4 ms") in one.context["facts"]


def test_a_discarded_run_does_not_flatten_the_bars_of_the_others(viewer: Client) -> None:
    row = SchedulerFactory()
    ran(row, 0.02)
    discarded(row)
    bars = str(viewer.get(overview(row)).context["recent"]["bars"])
    assert 'height="26"' in bars.split("<rect")[1]


def test_a_run_that_is_slower_than_usual_is_marked_on_its_row_and_its_page(
    viewer: Client, slow: SchedulerExecution
) -> None:
    mark = "6x the median of 2 min 3 s"
    assert viewer.get(LIST).content.decode().count(mark) == 1
    page = viewer.get(reverse("admin:scheduling_schedulerexecution_change", args=[slow.pk])).content.decode()
    assert mark in page
    assert viewer.get(overview(slow.scheduler)).content.decode().count(mark) == 1
    other = slow.scheduler.executions.order_by("pk").first()
    assert (
        "the median of"
        not in viewer.get(reverse("admin:scheduling_schedulerexecution_change", args=[other.pk])).content.decode()
    )


@pytest.mark.parametrize(("took", "expected"), [("slow", "s"), ("1m", "slr"), ("10m", "sr"), ("1h", "r"), ("x", "")])
def test_the_filter_by_duration(viewer: Client, slow: SchedulerExecution, took: str, expected: str) -> None:
    row = SchedulerFactory()
    long, short = ran(row, 61), ran(row, 59)
    running = ran(row, 0, timedelta(hours=2), succeeded=False, running=True, finished_at=None)
    discarded(row)
    rows = {slow.pk: "s", long.pk: "l", short.pk: "x", running.pk: "r"}
    others = set(slow.scheduler.executions.values_list("pk", flat=True)) - {slow.pk}
    names = sorted(rows[pk] for pk in found(viewer, took=took) if pk not in others)
    assert names == sorted(expected)


def test_the_order_by_duration(viewer: Client) -> None:
    row = SchedulerFactory()
    rows = [ran(row, seconds).pk for seconds in (5, 50, 1)]
    waits = SchedulerExecutionFactory(scheduler=row).pk
    place = place_of(viewer)
    longest = [rows[1], rows[0], rows[2], waits]
    assert found(viewer, o=f"-{place}") == longest
    assert found(viewer, o=str(place)) == longest[::-1]


def test_the_schedules_with_the_longest_runs_are_compared(
    viewer: Client, slow: SchedulerExecution, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = SchedulerFactory()
    for seconds in (2, 2, 2, 2, 2, 60):
        last = ran(newer, seconds)
    assert found(viewer, took="slow") == [last.pk, slow.pk]
    monkeypatch.setattr(DurationFilter, "most_schedules", 1)
    assert found(viewer, took="slow") == [slow.pk]


@pytest.mark.parametrize("order", ["99", "-99", "4.99", "x", "", "--4", "99999999999999999999"])
def test_an_order_by_a_column_that_the_list_does_not_have(viewer: Client, order: str) -> None:
    ran(SchedulerFactory(), 5)
    assert viewer.get(LIST, {"o": order}).status_code == 200


def test_filter_and_order_look_at_the_newest_rows_only(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    row = SchedulerFactory()
    rows = [ran(row, 100 + number).pk for number in range(6)]
    monkeypatch.setattr(duration, "NEWEST", 3)
    monkeypatch.setattr(duration, "NEWEST_OF_SCHEDULE", 2)
    assert sorted(found(viewer, took="1m")) == rows[3:]
    assert sorted(found(viewer, took="1m", scheduler=row.pk)) == rows[4:]
    for place in (place_of(viewer), place_of(viewer) + 1):  # by duration, and by attempt, which has no link
        assert len(found(viewer, o=f"-{place}")) == 3
    assert len(found(viewer, o="-0")) == 6
    text = "Only the newest 3 executions were looked at."
    assert text in viewer.get(LIST, {"took": "1h"}).content.decode()
    assert text not in viewer.get(LIST).content.decode()
    monkeypatch.setattr(duration, "NEWEST", 6)
    assert "were looked at" not in viewer.get(LIST, {"took": "1h"}).content.decode()


def test_the_newest_rows_are_those_of_the_chosen_time(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duration, "NEWEST", 3)
    monkeypatch.setattr(duration, "NEWEST_OF_SCHEDULE", 2)
    row = SchedulerFactory()
    old = [ran(row, 100, timedelta(days=3)).pk for _ in range(4)]
    for _number in range(4):
        ran(row, 100)
    until = (clock.now() - timedelta(days=2)).strftime("%Y-%m-%dT%H:%M")
    assert sorted(found(viewer, took="1m", to=until)) == old[1:]
    assert sorted(found(viewer, took="1m", to=until, scheduler=row.pk)) == old[2:]


def test_from_and_to(viewer: Client) -> None:
    row, now = SchedulerFactory(), clock.now()
    hours = {hour: ran(row, 1, timedelta(hours=hour)).pk for hour in (5, 4, 3, 2, 1)}

    def ago(hour: float) -> str:
        return f"{now - timedelta(hours=hour):%Y-%m-%dT%H:%M:%S}"

    assert found(viewer, **{"from": ago(3.5)}) == [hours[1], hours[2], hours[3]]
    assert found(viewer, to=ago(3.5)) == [hours[4], hours[5]]
    assert found(viewer, **{"from": ago(4.5), "to": ago(1.5)}) == [hours[2], hours[3], hours[4]]
    assert found(viewer, **{"from": "yesterday"}) == []
    page = viewer.get(LIST, {"from": ago(4.5), "took": "1h"}).content.decode()
    assert f'value="{ago(4.5)}"' in page
    assert '<input type="hidden" name="took" value="1h">' in page


@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00", "9999-12-31T23:59", "2026-02-30T00:00", "x" * 500, "2026-03-29T02:30"]
)
def test_an_instant_that_no_execution_can_have_finds_nothing(viewer: Client, text: str) -> None:
    ran(SchedulerFactory(), 1)
    with clock.override("Europe/Berlin"):
        for name in ("from", "to"):
            response = viewer.get(LIST, {name: text, "took": "1m"})
            assert response.status_code == 200
            assert response.context["cl"].result_count == 0


def test_last_night(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 3, 10, 9, 0, tzinfo=ZoneInfo("UTC"))
    monkeypatch.setattr(clock, "now", lambda: now)
    row = SchedulerFactory()
    rows = {hours: ran(row, 1, timedelta(hours=hours)).pk for hours in (14, 12, 2, 0.5)}
    assert found(viewer, within="night") == [rows[2], rows[12]]


@pytest.mark.parametrize("hour", [1, 8, 12, 23])
def test_the_last_night_is_the_same_all_day(hour: int) -> None:
    zone = ZoneInfo("Europe/Berlin")
    begins, ends = last_night(datetime(2026, 3, 29, hour, 30, tzinfo=zone))
    assert (begins, ends) == (datetime(2026, 3, 28, 20, tzinfo=zone), datetime(2026, 3, 29, 8, tzinfo=zone))


def test_the_queries_do_not_grow_with_the_rows(viewer: Client) -> None:
    def queries(**query: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            viewer.get(LIST, query)
        return len(captured)

    def fill(count: int) -> None:
        for number in range(count):
            row = SchedulerFactory(worker=None, reminder=ReminderFactory()) if number % 2 else SchedulerFactory()
            for _run in range(6):
                ran(row, 20)
            ran(row, 200)
            discarded(row)

    fill(2)
    asked: list[dict[str, str]] = [
        {},
        {"took": "slow"},
        {"took": "1m", "within": "night"},
        {"o": f"-{place_of(viewer)}"},
    ]
    few = [queries(**query) for query in asked]
    fill(10)
    many = [queries(**query) for query in asked]
    assert all(more <= less + 2 for more, less in zip(many, few, strict=True)), (few, many)
    assert max(many) <= 20, many


def test_unusable_values_do_not_break_the_list_by_duration(viewer: Client) -> None:
    row = ran(SchedulerFactory(), 100)
    Attempt.objects.all().delete()
    if connection.vendor == "sqlite":
        with connection.cursor() as cursor:
            cursor.execute("UPDATE scheduling_schedulerexecution SET started_at = 'never' WHERE id = %s", [row.pk])
    assert viewer.get(LIST, {"took": "1m"}).status_code == 200
