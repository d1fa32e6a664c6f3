"""What an edit would change: the next runs, and the load of the next 24 hours from a bounded look."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.core.cron import parse, upcoming
from scheduling.core.hours import hours_from, starts_within
from scheduling.models import Scheduler
from scheduling.models.exclusions import cache as calendars
from scheduling.models.visibility import EVERYTHING, Visibility
from scheduling.operations import site_load as looks
from scheduling.operations.actor import Actor
from scheduling.operations.site_load import LoadLimits, site_load
from scheduling.operations.time_machine import load_change, preview, runs_of
from scheduling.testing import travel
from tests.factories import CalendarFactory, GroupFactory, SchedulerFactory, UserFactory, due
from tests.http.client import ApiClient
from tests.management.cron.calls import cron
from tests.support import NOON

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fresh_look() -> Iterator[None]:
    looks.forget()
    calendars.clear()  # those of other tests had the same numbers and versions
    yield
    looks.forget()


def many(count: int, expression: str, **columns: Any) -> list[Scheduler]:
    return [SchedulerFactory(schedule=expression, timezone="UTC", **columns) for _ in range(count)]


def edited(row: Scheduler, **values: Any) -> Scheduler:
    found = Scheduler.objects.get(pk=row.pk)
    for name, value in values.items():
        setattr(found, name, value)
    return found


@pytest.mark.parametrize("expression", ["* * * * *", "*/7 3-9 * * *", "30 2 * * *", "0 0 29 3 *", "15 */2 * * 0"])
@pytest.mark.parametrize("now", [NOON, datetime.fromisoformat("2026-03-28T12:34:56+00:00")])
def test_the_starts_of_a_day_are_those_that_are_computed_one_by_one(expression: str, now: datetime) -> None:
    for tz in ("UTC", "Europe/Madrid", "Asia/Kolkata", "America/New_York"):
        edges = hours_from(now)
        wanted = [at for at in upcoming(parse(expression), tz, now - timedelta(seconds=1), 1_441) if at < edges[-1]]
        assert starts_within(parse(expression), tz, edges) == [at for at in wanted if at >= now]


def test_the_crowded_minute_and_emptier_ones_near_it_are_told() -> None:
    many(6, "0 3 * * *")
    many(2, "5 3 * * *")
    many(3, "0 3 * * *", status=False)
    row = SchedulerFactory(schedule="30 9 * * *", timezone="UTC")
    now = clock.now()
    found = load_change(EVERYTHING, row, edited(row, schedule="0 3 * * *"), now)
    assert found.busiest is not None
    assert (found.busiest.at.hour, found.busiest.at.minute) == (3, 0)
    assert (found.busiest.without, found.busiest.with_it, found.busiest.own) == (6, 7, True)
    assert [(at.minute, count) for at, count in found.emptier[:2]] in ([(59, 0), (1, 0)], [(1, 0), (2, 0)])
    assert not found.is_cut
    starts = {(one.at.hour, one.at.minute): (one.without, one.with_it) for one in found.minutes}
    assert starts[3, 0] == (6, 7)
    assert (9, 30) not in starts  # the edit takes it away


def test_the_look_is_bounded_and_its_counts_are_complete_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoadLimits, "schedules", 5)
    now = clock.now().replace(second=30, microsecond=0)
    minute = now.replace(second=0)
    for number in range(1, 9):
        due(SchedulerFactory(schedule="* * * * *", timezone="UTC"), minute + timedelta(minutes=number))
    with CaptureQueriesContext(
        connection,
    ) as queries:
        found = site_load(EVERYTHING, now)
        again = site_load(EVERYTHING, now)
    assert len(queries) == 1
    assert "LIMIT 6" in queries[0]["sql"]
    assert again is found
    assert found.is_cut
    assert found.end == minute + timedelta(minutes=7)
    # The sixth schedule is due in the sixth minute. It was not looked at, and the minutes before it are complete.
    assert found.emptier_near(0, 9) == []


def test_schedules_of_other_groups_are_not_counted() -> None:
    group = GroupFactory()
    many(3, "0 3 * * *", group=group)
    row = SchedulerFactory(schedule="0 3 * * *", timezone="UTC")
    now = clock.now()
    for visible, count in ((EVERYTHING, 4), (Visibility(frozenset()), 1), (Visibility(frozenset({group.pk})), 4)):
        busiest = load_change(visible, row, edited(row, schedule="0 3 * * *"), now).busiest
        assert busiest is not None
        assert busiest.with_it == count


def test_a_preview_stores_nothing_and_checks_as_a_save_does() -> None:
    actor = Actor(UserFactory(superuser=True))
    row = SchedulerFactory(schedule="0 8 * * *", timezone="UTC")
    found = preview(actor, row.pk, {"schedule": "0 9 * * *"}, clock.now())
    assert {one.mark for one in found.changes} <= {"changed", "added", "removed"}
    assert len(found.before) == len(found.after) == 20
    paused = preview(actor, row.pk, {"status": False}, clock.now())
    assert (paused.after, {one.mark for one in paused.changes}) == ([], {"removed"})
    row.refresh_from_db()
    assert (row.schedule, row.status) == ("0 8 * * *", True)


def test_the_api_and_the_command_tell_the_same() -> None:
    client = ApiClient(UserFactory(username="boss", superuser=True))
    row = SchedulerFactory(name="nightly", schedule="0 8 * * *", timezone="UTC")
    told = client.post(f"schedulers/{row.pk}/preview", {"schedule": "0 9 * * *"}).json()
    shown = cron("edit", "nightly", "--schedule", "0 9 * * *", "--dry-run", "--json").json["preview"]
    assert shown["changes"] == told["changes"]
    text = cron("edit", "nightly", "--schedule", "0 9 * * *", "--dry-run").out
    assert "~" in text
    assert "Nothing was changed." in text
    new = client.post("schedulers/preview", {"worker": "tests.noop", "schedule": "0 9 * * *"}).json()
    assert (new["before"], len(new["after"]), new["schedule_id"]) == ([], 20, None)
    for path in ("schedulers/preview", f"schedulers/{row.pk}/preview"):
        assert client.post(path, {"schedule": "61 * * * *", "worker": "tests.noop"}).status_code == 422
    assert ApiClient(UserFactory()).post(f"schedulers/{row.pk}/preview", {}).status_code == 403
    hidden = SchedulerFactory(group=GroupFactory())
    limited = ApiClient(UserFactory(permissions=["scheduling.view_scheduler", "scheduling.change_scheduler"]))
    assert limited.post(f"schedulers/{hidden.pk}/preview", {}).status_code == 404
    row.refresh_from_db()
    assert row.schedule == "0 8 * * *"


def starts_in(found: Any) -> dict[str, int]:
    return {f"{found.at(place):%d %H:%M}": count for place, count in enumerate(found.counts) if count}


@pytest.mark.parametrize(
    ("columns", "wanted"),
    [
        ({"active_from": NOON}, {f"1{at // 24} {at % 24:02}:00": 1 for at in range(15, 37, 3)}),
        (
            {"on_excluded": "hold"},
            {"10 19:00": 1, "10 21:00": 1, "11 05:00": 1, "11 06:00": 1, "11 09:00": 1, "11 12:00": 1},
        ),
        ({"on_excluded": "hold", "schedule": "0 12 * * 5"}, {"10 19:00": 1}),
        ({"on_excluded": "skip"}, {"10 21:00": 1, "11 06:00": 1, "11 09:00": 1, "11 12:00": 1}),
        ({"active_until": NOON + timedelta(hours=9)}, {"10 15:00": 1, "10 18:00": 1, "10 21:00": 1}),
        ({"active_from": NOON + timedelta(hours=19)}, {"11 09:00": 1, "11 12:00": 1}),
    ],
)
def test_the_load_has_what_calendars_leave_and_what_they_hold(columns: dict[str, Any], wanted: dict[str, int]) -> None:
    # The first exclusion began days ago. In the last one, nothing is due.
    entries = "2026-03-01..2026-03-09\n2026-03-10 00:00-19:00\n2026-03-10 22:00-24:00\n2026-03-11 00:00-05:00\n"
    if "on_excluded" in columns:
        columns |= {"calendar": CalendarFactory(timezone="UTC", entries=entries + "2026-03-11 07:00-08:00\n")}
    now = NOON + timedelta(minutes=1)
    with travel(now):
        row = SchedulerFactory(**{"schedule": "0 */3 * * *", "timezone": "UTC", **columns})
        if columns.get("schedule"):  # it was made before the hold
            Scheduler.objects.filter(pk=row.pk).update(
                next_nominal_at=NOON - timedelta(days=4), next_run_at=NOON + timedelta(hours=7)
            )
            row.refresh_from_db()
        assert starts_in(site_load(EVERYTHING, now)) == wanted
        found = load_change(EVERYTHING, row, edited(row), now)
        assert all(one.without == one.with_it == 1 for one in found.minutes)
        assert [f"{at:%d %H:%M}" for at in runs_of(row, now) if at < now + timedelta(days=1)] == list(wanted)
