"""New zone data moves starts of occurrences whose own instants it does not move: by a calendar, or by the offset."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduling.core.timing import OnExcluded
from scheduling.execution import zone_plan
from scheduling.execution.claim import claim_due
from scheduling.execution.zone_moves import Move
from scheduling.models import Calendar, MovedRun, Scheduler, SchedulerExecution, ZoneData
from scheduling.testing import travel
from tests.execution.zone_change import NEW, OLD, data, producer
from tests.factories import CalendarFactory, SchedulerFactory

pytestmark = pytest.mark.django_db

MADRID, LONDON = "Europe/Madrid", "Europe/London"
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture(autouse=True)
def few_zones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zone_plan, "zone_names", lambda: frozenset({"UTC", MADRID, LONDON}))


def plan(row: Scheduler) -> tuple[datetime | None, datetime | None]:
    row.refresh_from_db()
    return row.next_nominal_at, row.next_run_at


@pytest.mark.parametrize(
    ("on_excluded", "old", "new"),
    [
        # The calendar excludes 13:00 to 17:00 in Madrid: 12:00 to 16:00 UTC, and then 13:00 to 17:00 UTC.
        (OnExcluded.HOLD, NOW + DAY - NOW.hour * HOUR + 16 * HOUR, NOW + DAY - NOW.hour * HOUR + 17 * HOUR),
        (OnExcluded.SKIP, NOW + DAY + 4 * HOUR, NOW + DAY + 5 * HOUR),
    ],
)
def test_the_zone_of_a_calendar_moves_the_start_of_a_schedule_in_another_zone(
    on_excluded: OnExcluded, old: datetime, new: datetime
) -> None:
    with travel(NOW):
        with data(OLD):
            producer(NOW)
            calendar = CalendarFactory(timezone=MADRID, entries="2026-03-11 13:00-17:00 Visit")
            expression = {OnExcluded.HOLD: "30 14 * * *", OnExcluded.SKIP: "0 14-17 11 3 *"}[on_excluded]
            own: dict[str, Any] = {"schedule": expression, "timezone": "UTC", "on_excluded": on_excluded.value}
            first = NOW + DAY + (2.5 if on_excluded is OnExcluded.HOLD else 2) * HOUR
            row = SchedulerFactory(calendar=calendar, active_from=NOW + DAY, **own)
            other = SchedulerFactory(schedule="30 14 * * *", timezone="UTC", spread_seconds=60)
            before = plan(other)
            assert plan(row) == (first, old)
        with data(NEW, {MADRID: LONDON}):
            producer(NOW)
            assert plan(row) == (first, new)
            assert plan(other) == before
            (moved,) = MovedRun.objects.all()
            assert (moved.scheduler, moved.old_at, moved.new_at) == (row, old, new)
            claim_due(old, embedded=True)
            assert not SchedulerExecution.objects.filter(scheduler=row, state="queued").exists()
            claim_due(new, embedded=True)
            run = SchedulerExecution.objects.get(scheduler=row, state="queued")
            assert run.should_start_at == new


def test_a_run_that_was_free_is_held_by_the_new_data() -> None:
    with travel(NOW):
        with data(OLD):
            producer(NOW)
            calendar = CalendarFactory(timezone=MADRID, entries="2026-03-11 13:00-17:00 Visit")
            row = SchedulerFactory(
                schedule="30 16 * * *", timezone="UTC", calendar=calendar, active_until=NOW + DAY + 5 * HOUR,
                active_from=NOW + DAY, on_excluded="hold",
            )  # fmt: skip
            start = NOW + DAY + 4.5 * HOUR
            assert plan(row) == (None, start)
        with data(NEW, {MADRID: LONDON}):
            producer(NOW)
            assert plan(row) == (start, NOW + DAY + 5 * HOUR)
            assert MovedRun.objects.count() == 1


def test_a_calendar_that_was_changed_is_left_to_its_sweep() -> None:
    with travel(NOW):
        with data(OLD):
            producer(NOW)
            calendar = CalendarFactory(timezone=MADRID, entries="2026-03-11 13:00-17:00 Visit")
            row = SchedulerFactory(schedule="30 14 11 3 *", timezone="UTC", calendar=calendar, on_excluded="hold")
            before = plan(row)
            changed = Calendar.objects.get(pk=calendar.pk)
            changed.entries = "2026-03-11 13:00-18:00 Visit"
            changed.save()
        with data(NEW, {MADRID: LONDON}):
            producer(NOW)
            assert plan(row) == before
            assert not MovedRun.objects.exists()


def test_the_offset_of_a_spread_run_depends_on_the_next_one() -> None:
    """Each run has an offset of its own, which is shorter than the time to the next run."""
    with travel(begin := datetime(2026, 3, 28, 12, tzinfo=UTC)):
        with data(OLD):
            producer(begin)
            own: dict[str, Any] = {"timezone": MADRID, "spread_seconds": 86_400, "spread_each": True}
            # 1:30 on 29 March, and 3:30, which is one hour later by the old data and two hours later by the new data.
            rows = [SchedulerFactory(schedule="30 1,3 29 3 *", **own) for _number in range(5)]
            before = [plan(row) for row in rows]
        with data(NEW, {MADRID: "Africa/Lagos"}):
            producer(begin)
            after = [plan(row) for row in rows]
            assert [nominal for nominal, _start in after] == [nominal for nominal, _start in before]
            moves = [(start, one[1]) for (_nominal, start), one in zip(before, after, strict=True)]
            assert all(new is not None and old is not None and old < new for old, new in moves)
            listed = MovedRun.objects.order_by("scheduler").values_list("old_at", "new_at")
            assert list(listed) == moves


def test_what_moves_stays_within_the_bounds() -> None:
    """Bounds are instants, which no new data moves."""
    with travel(NOW):
        with data(OLD):
            producer(NOW)
            # 9:00 in Madrid is 8:00 UTC, and then 9:00 UTC. By the data of Athens it is 7:00 UTC.
            eight = NOW + 20 * HOUR
            later = SchedulerFactory(schedule="0 9 * * *", timezone=MADRID, active_until=eight)
            earlier = SchedulerFactory(schedule="0 9 * * *", timezone=LONDON, active_from=eight + HOUR)
            follows = SchedulerFactory(schedule="*/30 9-17 * * *", timezone=MADRID, active_from=NOW + 40 * DAY)
            before = [plan(row) for row in (later, earlier, follows)]
            assert before[:2] == [(None, eight), (None, eight + HOUR)]
        with data(NEW, {MADRID: LONDON, LONDON: "Europe/Athens"}):
            producer(NOW)
            assert plan(later) == (None, None)
            assert plan(earlier) == (None, eight - HOUR + DAY)
            assert plan(follows)[1] == NOW + 40 * DAY
            assert before[2][1] == NOW + 40 * DAY
            (moved,) = MovedRun.objects.all()
            assert (moved.scheduler, moved.old_at, moved.new_at) == (earlier, eight + HOUR, eight - HOUR + DAY)


def test_a_schedule_without_a_run_gets_the_one_that_the_new_data_moves_between_its_bounds() -> None:
    with travel(NOW):
        with data(OLD):
            producer(NOW)
            # 9:00 in Madrid is 8:00 UTC, and then 9:00 UTC.
            nine = NOW.replace(hour=9, minute=0, second=0, microsecond=0) + DAY
            bounds: dict[str, Any] = {"active_from": nine - HOUR / 2, "active_until": nine + HOUR}
            plain, spread = (
                SchedulerFactory(schedule="0 9 * * *", timezone=MADRID, **bounds, **own)
                for own in ({}, {"spread_seconds": 60})
            )
            outside = SchedulerFactory(schedule="0 13 * * *", timezone=MADRID, **bounds)
            over = SchedulerFactory(schedule="0 9 * * *", timezone=MADRID, active_until=NOW - HOUR)
            assert [plan(row) for row in (plain, spread, outside, over)] == [(None, None)] * 4
        with data(NEW, {MADRID: LONDON}):
            producer(NOW)
            assert plan(plain) == (None, nine)
            assert nine <= plan(spread)[1] <= nine + HOUR / 60
            assert [plan(row) for row in (outside, over)] == [(None, None)] * 2


@pytest.mark.parametrize("own", [{}, {"spread_seconds": 60}])
def test_an_edit_between_the_look_and_the_move_comes_first(
    monkeypatch: pytest.MonkeyPatch, own: dict[str, Any]
) -> None:
    store = zone_plan.store

    def edit(wanted: Sequence[Move], row: ZoneData) -> None:
        if wanted:
            edited = Scheduler.objects.get()
            edited.timezone = "Europe/Berlin"  # the same instant, which does not move
            edited.save()
        store(wanted, row)

    with travel(NOW):
        with data(OLD):
            producer(NOW)
            row = SchedulerFactory(schedule="30 14 * * *", timezone=MADRID, **own)
        before = plan(row)
        monkeypatch.setattr(zone_plan, "store", edit)
        with data(NEW, {MADRID: LONDON}):
            producer(NOW)
            assert plan(row) == before
            assert not MovedRun.objects.exists()
