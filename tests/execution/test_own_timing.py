"""Schedules that are spread, bounded, or catch up in their own way: claims, edits, pauses, plain SQL, restored rows."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import connection
from django.utils import timezone as clock

from scheduling.core import skip_reasons
from scheduling.core.spread_offset import SpreadOffset
from scheduling.execution import claim, due_plans
from scheduling.execution.claim import claim_due
from scheduling.execution.due_row import COLUMNS, due_row
from scheduling.execution.skip_due import skip_due
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.own_timing import IS_PLAIN, PLAIN, has_own_timing
from scheduling.models.plan import PlanState
from scheduling.operations.catch_up import catch_up_words, caught_up, resume_words
from scheduling.producer.sweeps import plan_stale
from tests.factories import SchedulerFactory
from tests.support import NOON, Clock, at_once

pytestmark = pytest.mark.django_db

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


@pytest.fixture
def at(at: Clock) -> Clock:
    """Set the clock to an instant. At first, it is a minute before noon."""
    at(NOON - MINUTE)
    return at


def hourly(**columns: Any) -> Scheduler:
    return SchedulerFactory(**{"schedule": "0 * * * *", "timezone": "UTC", "params": {}, **columns})


def offset(row: Scheduler) -> timedelta:
    return SpreadOffset(row.pk, SECOND * (row.spread_seconds or 0)).stable


def late_by(least: timedelta, **columns: Any) -> Scheduler:
    """A schedule that starts at least so much later. Its offset is computed from its number."""
    while offset(row := hourly(**columns)) < least:
        row.delete()
    return row


def rows() -> list[tuple[str, str, int]]:
    found = SchedulerExecution.objects.order_by("scheduled_at", "pk")
    return [(row.execution_key, row.state, row.missed) for row in found]


class TestSpread:
    def test_an_occurrence_starts_at_its_assigned_time_with_its_nominal_key(self, at: Clock) -> None:
        row = late_by(MINUTE, spread_seconds=1800)
        assert (row.next_nominal_at, row.next_run_at) == (NOON, NOON + offset(row))
        stored = Scheduler.objects.get(pk=row.pk)
        assert (stored.next_nominal_at, stored.next_run_at) == (NOON, NOON + offset(row))
        start = at(NOON + offset(row))
        assert claim_due(start - SECOND, embedded=True).claimed == []
        (made,) = claim_due(start, embedded=True).claimed
        assert (made.execution_key, made.scheduled_at, made.assigned_at) == ("cron-2026-3-10-12-0", NOON, start)
        row.refresh_from_db()
        assert (row.next_nominal_at, row.next_run_at) == (NOON + HOUR, start + HOUR)

    def test_an_edit_while_it_waits_loses_nothing(self, at: Clock) -> None:
        row = late_by(4 * HOUR, spread_seconds=86_400)
        at(NOON + 3 * HOUR + MINUTE)
        assert row.next_run_at is not None
        assert row.next_run_at > clock.now()
        row.schedule, row.spread_seconds = "30 * * * *", None
        row.save()
        (made,) = claim_due(clock.now(), embedded=True).claimed
        assert made.scheduled_at == NOON + 3 * HOUR
        assert rows() == [("cron-2026-3-10-12-0", "skipped", 3), ("cron-2026-3-10-15-0", "queued", 0)]
        assert skip_reasons.EDITED in SchedulerExecution.objects.get(state="skipped").reason

    def test_a_pause_while_it_waits_loses_nothing(self, at: Clock) -> None:
        row = late_by(MINUTE, spread_seconds=1800)
        at(NOON + offset(row) - SECOND)
        row.status = False
        row.save()
        claim_due(clock.now(), embedded=True)
        at(NOON + 3 * HOUR + MINUTE)
        row.refresh_from_db()
        row.status = True
        row.save()
        assert [(key, missed) for key, _state, missed in rows()] == [
            ("cron-2026-3-10-12-0", 0), ("cron-2026-3-10-13-0", 3),
        ]  # fmt: skip
        assert row.next_nominal_at == NOON + 4 * HOUR


class TestMissed:
    def test_all_are_caught_up_up_to_the_cap(self, at: Clock) -> None:
        row = hourly(missed_runs="all", missed_cap=3, missed_within_seconds=8 * 3600)
        now = at(NOON + 10 * HOUR + MINUTE)
        assert caught_up([row], now) == (3, 8)
        assert catch_up_words(row, now) == [
            "As soon as a producer works, 3 runs start, those of 2026-03-10 20:00 UTC to 2026-03-10 22:00 UTC.",
            "8 occurrences are recorded as skipped.",
        ]
        done = claim_due(now, embedded=True)
        assert [made.scheduled_at.hour for made in done.claimed] == [20, 21, 22]
        assert done.skipped == 2
        assert [missed for _key, state, missed in rows() if state == "skipped"] == [3, 5]

    def test_none_is_caught_up(self, at: Clock) -> None:
        hourly(missed_runs="none")
        assert claim_due(NOON + 59 * SECOND, embedded=True).claimed
        assert claim_due(NOON + 5 * HOUR + 61 * SECOND, embedded=True).claimed == []
        assert rows()[1:] == [("cron-2026-3-10-13-0", "skipped", 5)]

    def test_a_schedule_that_runs_alone_catches_up_one(self, at: Clock) -> None:
        hourly(missed_runs="all", overlap="skip")
        (made,) = claim_due(NOON + 5 * HOUR, embedded=True).claimed
        assert made.scheduled_at == NOON + 5 * HOUR

    def test_one_batch_makes_a_limited_number_of_runs(self, at: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
        for _number in range(3):
            hourly(missed_runs="all", missed_within_seconds=864_000)
        monkeypatch.setattr(due_plans, "RUNS_PER_BATCH", 20)
        counts = []
        while True:
            done = claim_due(NOON + 20 * HOUR, embedded=True)
            counts.append(len(done.claimed))
            if not done.full:
                break
        assert counts == [21, 21, 21]

    @pytest.mark.django_db(transaction=True)
    def test_producers_at_once_make_one_row_for_each_instant(self, at: Clock) -> None:
        for _number in range(10):
            hourly(missed_runs="all", spread_seconds=600)
        now = NOON + 12 * HOUR

        def produce() -> int:
            count = 0
            while True:
                done = claim_due(now, embedded=True, limit=3)
                count += len(done.claimed)
                if not done.full:
                    return count

        assert sum(at_once([produce] * 4)) == SchedulerExecution.objects.count()
        nominal = set(SchedulerExecution.objects.values_list("scheduler", "scheduled_at"))
        assert len(nominal) == SchedulerExecution.objects.count() >= 120

    @pytest.mark.django_db(transaction=True)
    def test_the_keys_alone_keep_racing_claims_apart(self, at: Clock) -> None:
        row = hourly(missed_runs="all")
        values = due_row(Scheduler.objects.filter(pk=row.pk).values_list(*COLUMNS).get())

        def race() -> int:
            done = claim.Dispatched()
            claim._claim([values], NOON + 5 * HOUR, True, done)
            return len(done.claimed)

        assert sum(at_once([race] * 4)) == SchedulerExecution.objects.count() == 6
        assert connection.is_usable()


class TestBounds:
    def test_it_runs_between_its_bounds_and_then_never_again(self, at: Clock) -> None:
        row = hourly(active_from=NOON + 2 * HOUR, active_until=NOON + 3 * HOUR)
        assert row.next_run_at == NOON + 2 * HOUR
        claim_due(NOON + 2 * HOUR, embedded=True)
        (made,) = claim_due(NOON + 3 * HOUR, embedded=True).claimed
        row.refresh_from_db()
        assert (made.scheduled_at, row.next_run_at, row.status) == (NOON + 3 * HOUR, None, True)
        assert row.plan_state == PlanState.WITHOUT_NEXT_RUN

    def test_a_pause_counts_what_lies_between_the_bounds(self, at: Clock) -> None:
        row = hourly(active_until=NOON + 3 * HOUR)
        row.status = False
        row.save()
        now = at(NOON + 9 * HOUR)
        assert resume_words(row, now) == [
            "4 runs fell due during the pause, the first at 2026-03-10 12:00 UTC. They are not caught up: one row "
            "records them as skipped."
        ]
        row.status = True
        row.save()
        assert rows() == [("cron-2026-3-10-12-0", "skipped", 4)]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"active_from": NOON + HOUR, "active_until": NOON}, "active_until"),
    ({"spread_seconds": 86_401}, "spread_seconds"),
    ({"spread_seconds": 0}, "spread_seconds"),
    ({"missed_runs": "some"}, "missed_runs"),
    ({"on_excluded": "wait"}, "on_excluded"),
    ({"missed_runs": "all", "missed_cap": 0}, "missed_cap"),
    ({"missed_runs": "all", "missed_cap": 1001}, "missed_cap"),
    ({"missed_cap": 5}, "missed_cap"),
    ({"missed_within_seconds": 10**9}, "missed_within_seconds"),
    ({"missed_runs": "none", "missed_within_seconds": 60}, "missed_within_seconds"),
    ({"spread_each": True}, "spread_each"),
    ({"stay_alive": True, "spread_seconds": 60}, "spread_seconds"),
    ({"stay_alive": True, "missed_runs": "all"}, "missed_runs"),
    ({"stay_alive": True, "active_until": NOON}, "active_until"),
    ({"schedule": "", "date_time": NOON + HOUR, "spread_seconds": 60}, "spread_seconds"),
    ({"schedule": "", "date_time": NOON + HOUR, "active_until": NOON}, "active_until"),
    ({"schedule": "", "date_time": NOON, "active_from": NOON + HOUR}, "active_from"),
]


class TestRefused:
    @pytest.mark.parametrize(("columns", "name"), WRONG)
    def test_what_contradicts_itself_is_refused(self, at: Clock, columns: dict[str, Any], name: str) -> None:
        with pytest.raises(ValidationError) as refused:
            hourly(**columns)
        assert list(refused.value.message_dict) == [name]

    @pytest.mark.parametrize(("columns", "name"), [*WRONG[:4], WRONG[7], WRONG[14]])
    def test_plain_sql_sets_it_aside_and_the_others_go_on(self, at: Clock, columns: dict[str, Any], name: str) -> None:
        row, other = hourly(), hourly()
        Scheduler.objects.filter(pk=row.pk).update(**columns)
        now = at(NOON + SECOND)
        assert claim_due(now, embedded=True).claimed[0].scheduler_id == other.pk
        plan_stale(now)
        row.refresh_from_db()
        assert row.plan_state == PlanState.SET_ASIDE
        assert row.plan_error.startswith(f"{name}: ")
        plain = {"spread_seconds": None, "missed_runs": "latest", "missed_cap": None, "active_from": None}
        usual = {"schedule": "0 * * * *", "date_time": None, "active_until": None}
        Scheduler.objects.filter(pk=row.pk).update(**plain, **usual)
        plan_stale(now)
        row.refresh_from_db()
        assert (row.plan_state, row.plan_error, row.next_run_at) == (PlanState.CURRENT, "", NOON + HOUR)


class TestPlainSql:
    @pytest.mark.parametrize(
        "columns",
        [
            {"spread_seconds": 600}, {"active_from": NOON + 5 * HOUR}, {"active_until": NOON + HOUR},
            {"missed_runs": "none"}, {"missed_within_seconds": 60}, {"on_excluded": "hold"},
        ],
    )  # fmt: skip
    def test_each_column_is_found_and_planned_anew_and_back(self, at: Clock, columns: dict[str, Any]) -> None:
        row = hourly()
        for changed in (columns, {name: PLAIN[name] for name in columns}):
            Scheduler.objects.filter(pk=row.pk).update(**changed)
            row.refresh_from_db()
            assert row.plan_state == PlanState.STALE
            assert plan_stale(clock.now()) == 1
            row.refresh_from_db()
            assert row.plan_state == PlanState.CURRENT
            assert row.next_run_at == {
                "spread_seconds": NOON + offset(row), "active_from": row.active_from or NOON,
            }.get(next(iter(columns)), NOON)  # fmt: skip
        assert not has_own_timing(row)
        assert Scheduler.objects.filter(IS_PLAIN, pk=row.pk).exists()

    def test_an_occurrence_that_waits_outlives_an_edit_by_plain_sql(self, at: Clock) -> None:
        row = late_by(MINUTE, spread_seconds=1800)
        now = at(NOON + offset(row) - SECOND)
        Scheduler.objects.filter(pk=row.pk).update(missed_runs="all")
        plan_stale(now)
        assert claim_due(now, embedded=True).claimed == []
        (made,) = claim_due(NOON + offset(row), embedded=True).claimed
        assert made.scheduled_at == NOON

    def test_what_waits_is_on_record_if_plain_sql_replaces_its_times(self, at: Clock) -> None:
        row = late_by(MINUTE, spread_seconds=1800)
        now = at(NOON + offset(row) - SECOND)
        Scheduler.objects.filter(pk=row.pk).update(schedule="0 5 * * *")
        plan_stale(now)
        assert rows() == [("cron-2026-3-10-12-0", "skipped", 1)]
        row.refresh_from_db()
        assert (row.next_nominal_at, row.plan_state) == (NOON + 17 * HOUR, PlanState.CURRENT)
        plan_stale(now)
        assert len(rows()) == 1

    def test_a_pause_by_plain_sql_puts_what_waits_on_record(self, at: Clock) -> None:
        row = late_by(MINUTE, spread_seconds=1800)
        now = NOON + offset(row)
        Scheduler.objects.filter(pk=row.pk).update(status=False)
        claim_due(now, embedded=True)
        row.refresh_from_db()
        assert (row.next_run_at, row.next_nominal_at) == (None, None)
        assert rows() == [("cron-2026-3-10-12-0", "skipped", 0)]


def test_what_fell_due_before_a_restore_is_skipped(at: Clock) -> None:
    row = late_by(MINUTE, spread_seconds=1800)
    until = NOON + 2 * HOUR + offset(row)
    assert skip_due(until, skip_reasons.RAN_BEFORE_RESTORE, until + SECOND) == 1
    row.refresh_from_db()
    assert rows() == [("cron-2026-3-10-12-0", "skipped", 3)]
    assert (row.next_nominal_at, row.next_run_at) == (NOON + 3 * HOUR, NOON + 3 * HOUR + offset(row))
