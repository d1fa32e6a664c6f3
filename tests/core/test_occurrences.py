"""The tests check which occurrences are due or missed, and which execution keys they have."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.cron import CronError, ZoneError, count_between, next_after, parse, resolve_wall
from scheduling.core.occurrences import (
    Due,
    Missed,
    Plan,
    cron_key,
    date_key,
    first_run,
    manual_key,
    plan_cron,
    plan_date,
)
from tests.core import brute
from tests.core.brute import utc
from tests.support import examples

DAY, HOUR, MINUTE, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
NEW_YORK = "America/New_York"


class TestKeys:
    @pytest.mark.parametrize(
        ("instant", "key"),
        [
            ("2025-12-12T08:00:00+00:00", "cron-2025-12-12-8-0"),
            ("2025-01-02T03:04:00+00:00", "cron-2025-1-2-3-4"),
            ("2025-12-12T08:00:00-05:00", "cron-2025-12-12-13-0"),
            ("2025-12-31T23:30:00-01:00", "cron-2026-1-1-0-30"),
            # An expression has no seconds, but the key would contain them.
            ("2025-12-12T08:00:09+00:00", "cron-2025-12-12-8-0-9"),
        ],
    )
    def test_cron_key_is_the_utc_instant_without_padding(self, instant: str, key: str) -> None:
        assert cron_key(datetime.fromisoformat(instant)) == key

    def test_the_two_instants_of_a_repeated_time_have_different_keys(self) -> None:
        first = next_after(parse("30 * * * *"), NEW_YORK, utc("2026-11-01T05:00"))
        second = next_after(parse("30 * * * *"), NEW_YORK, first)

        assert (cron_key(first), cron_key(second)) == ("cron-2026-11-1-5-30", "cron-2026-11-1-6-30")

    @pytest.mark.parametrize(
        ("instant", "key"),
        [("2026-03-01T09:05:00", "date-2026-3-1-9-5"), ("2026-03-01T09:05:07", "date-2026-3-1-9-5-7")],
    )
    def test_date_key_has_seconds_only_when_there_are_any(self, instant: str, key: str) -> None:
        assert date_key(utc(instant)) == key

    def test_manual_key(self) -> None:
        uuid = UUID("12345678-1234-5678-1234-567812345678")

        assert manual_key(uuid) == "manual-12345678-1234-5678-1234-567812345678"

    @pytest.mark.parametrize("key", [cron_key, date_key])
    def test_naive_instants_are_refused(self, key: object) -> None:
        with pytest.raises(ValueError, match="needs a time zone"):
            key(datetime(2026, 1, 1))  # type: ignore[operator]

    def test_keys_fit_their_column(self) -> None:
        longest = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)

        assert max(len(cron_key(longest)), len(date_key(longest)), len(manual_key(UUID(int=0)))) <= 64


class TestPlanCron:
    def plan(self, expression: str, due_from: str, now: str, catch_up: timedelta = DAY, tz: str = "UTC") -> Plan:
        return plan_cron(parse(expression), tz, utc(due_from), utc(now), catch_up)

    def test_on_time(self) -> None:
        plan = self.plan("0 9 * * *", "2026-01-01T09:00", "2026-01-01T09:00:00.250")

        assert plan == Plan(
            run=Due(utc("2026-01-01T09:00"), "cron-2026-1-1-9-0"),
            missed=None,
            next_run_at=utc("2026-01-02T09:00"),
        )

    def test_an_occurrence_is_due_at_its_instant(self) -> None:
        plan = self.plan("* * * * *", "2026-01-01T09:00", "2026-01-01T09:00")

        assert plan.run == Due(utc("2026-01-01T09:00"), "cron-2026-1-1-9-0")
        assert plan.next_run_at == utc("2026-01-01T09:01")

    def test_before_the_instant_nothing_is_due(self) -> None:
        plan = self.plan("* * * * *", "2026-01-01T09:00", "2026-01-01T08:59:59.999999")

        assert plan == Plan(run=None, missed=None, next_run_at=utc("2026-01-01T09:00"))

    def test_after_downtime_the_latest_occurrence_runs_and_the_others_are_counted(self) -> None:
        plan = self.plan("* * * * *", "2026-01-01T00:00", "2026-01-01T00:59:30")

        assert plan.run == Due(utc("2026-01-01T00:59"), "cron-2026-1-1-0-59")
        assert plan.missed == Missed(
            first=utc("2026-01-01T00:00"),
            last=utc("2026-01-01T00:58"),
            count=59,
            key="cron-2026-1-1-0-0",
            reason="Missed 59 occurrences from 2026-01-01 00:00 to 2026-01-01 00:58 UTC: no producer was running.",
        )
        assert plan.next_run_at == utc("2026-01-01T01:00")

    def test_the_reason_for_one_missed_occurrence_is_singular(self) -> None:
        plan = self.plan("0 * * * *", "2026-01-01T00:00", "2026-01-01T01:10")

        assert plan.run == Due(utc("2026-01-01T01:00"), "cron-2026-1-1-1-0")
        assert plan.missed is not None
        assert plan.missed.reason == "Missed 1 occurrence at 2026-01-01 00:00 UTC: no producer was running."

    @pytest.mark.parametrize(("late", "runs"), [(HOUR, True), (HOUR + timedelta(microseconds=1), False)])
    def test_the_window_includes_its_end(self, late: timedelta, runs: bool) -> None:
        due = utc("2026-01-01T09:00")

        plan = plan_cron(parse("0 9 * * *"), "UTC", due, due + late, HOUR)

        assert (plan.run is not None, plan.missed is None) == (runs, runs)
        assert plan.next_run_at == due + DAY

    def test_outside_the_window_all_are_missed(self) -> None:
        plan = self.plan("0 9 * * *", "2026-01-01T09:00", "2026-01-03T20:00", catch_up=HOUR)

        assert plan.run is None
        assert plan.missed == Missed(
            first=utc("2026-01-01T09:00"),
            last=utc("2026-01-03T09:00"),
            count=3,
            key="cron-2026-1-1-9-0",
            reason="Missed 3 occurrences from 2026-01-01 09:00 to 2026-01-03 09:00 UTC: "
            "no producer ran within the catch-up window of 1 hour.",
        )
        assert plan.next_run_at == utc("2026-01-04T09:00")

    @pytest.mark.parametrize(
        ("window", "words"),
        [
            (2 * DAY, "2 days"),
            (36 * HOUR, "36 hours"),
            (90 * MINUTE, "90 minutes"),
            (MINUTE, "1 minute"),
            (61 * SECOND, "61 seconds"),
            (timedelta(0), "0 seconds"),
        ],
    )
    def test_the_reason_names_the_window(self, window: timedelta, words: str) -> None:
        plan = self.plan("0 0 1 * *", "2026-01-01", "2026-01-05", catch_up=window)

        assert plan.missed is not None
        assert plan.missed.reason == (
            f"Missed 1 occurrence at 2026-01-01 00:00 UTC: no producer ran within the catch-up window of {words}."
        )

    def test_ten_years_of_missed_minutes_are_counted(self) -> None:
        due, now = utc("2016-01-01"), utc("2026-01-01T00:00:30")

        plan = plan_cron(parse("* * * * *"), NEW_YORK, due, now, DAY)

        assert plan.run == Due(utc("2026-01-01"), "cron-2026-1-1-0-0")
        assert plan.missed is not None
        assert plan.missed.count == (utc("2026-01-01") - due) // MINUTE
        assert plan.missed.last == utc("2025-12-31T23:59")
        assert plan.next_run_at == utc("2026-01-01T00:01")

    def test_the_stored_instant_counts_after_a_change_of_the_expression(self) -> None:
        # The expression was changed by plain SQL. The stored due instant still counts, and the next instant comes from
        # the new expression.
        plan = self.plan("0 12 * * *", "2026-01-01T09:17", "2026-01-01T09:18")

        assert plan.run == Due(utc("2026-01-01T09:17"), "cron-2026-1-1-9-17")
        assert plan.next_run_at == utc("2026-01-01T12:00")

    def test_an_interval_schedule_has_two_occurrences_in_a_fold(self) -> None:
        plan = self.plan("30 * * * *", "2026-11-01T04:30", "2026-11-01T06:40", tz=NEW_YORK)

        assert plan.missed is not None
        assert (plan.missed.count, plan.missed.last) == (2, utc("2026-11-01T05:30"))
        assert plan.run == Due(utc("2026-11-01T06:30"), "cron-2026-11-1-6-30")

    def test_naive_instants_are_refused(self) -> None:
        cron, naive, aware = parse("* * * * *"), datetime(2026, 1, 1), utc("2026-01-01")

        for due_from, now in ((naive, aware), (aware, naive)):
            with pytest.raises(ValueError, match="needs a time zone"):
                plan_cron(cron, "UTC", due_from, now, DAY)

    def test_a_plan_cannot_be_changed(self) -> None:
        plan = self.plan("* * * * *", "2026-01-01", "2026-01-01")

        with pytest.raises(FrozenInstanceError):
            plan.run = None  # type: ignore[misc]

    @examples(200)
    @given(
        brute.times,
        st.sampled_from(["UTC", NEW_YORK, "Australia/Lord_Howe", "Europe/Dublin"]),
        st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31), timezones=st.just(UTC)),
        st.timedeltas(timedelta(0), timedelta(days=3)),
        st.timedeltas(timedelta(0), timedelta(days=2)),
    )
    def test_every_due_occurrence_is_counted_once(
        self, expression: str, tz: str, saved: datetime, downtime: timedelta, catch_up: timedelta
    ) -> None:
        cron = parse(expression)
        due_from = next_after(cron, tz, saved)
        now = due_from + downtime

        plan = plan_cron(cron, tz, due_from, now, catch_up)

        # Each due occurrence is either the run or a missed occurrence.
        due = 1 + count_between(cron, tz, due_from, now)
        assert (plan.run is not None) + (plan.missed.count if plan.missed else 0) == due
        if plan.missed:
            assert plan.missed.first == due_from
            assert plan.missed.count == 1 + count_between(cron, tz, due_from, plan.missed.last)
        if plan.run:
            assert timedelta(0) <= now - plan.run.instant <= catch_up
            assert count_between(cron, tz, plan.run.instant, now) == 0
        if plan.run and plan.missed:
            assert next_after(cron, tz, plan.missed.last) == plan.run.instant
        # The next run is the first occurrence that is not due.
        assert plan.next_run_at is not None
        assert plan.next_run_at > now
        latest = plan.run.instant if plan.run else plan.missed.last if plan.missed else due_from
        assert plan.next_run_at == next_after(cron, tz, latest)


class TestPlanDate:
    def test_it_runs_once_and_never_again(self) -> None:
        due = utc("2026-01-01T09:00:07")

        plan = plan_date(due, due + MINUTE, DAY)

        assert plan == Plan(run=Due(due, "date-2026-1-1-9-0-7"), missed=None, next_run_at=None)

    @pytest.mark.parametrize(("late", "runs"), [(timedelta(0), True), (DAY, True), (DAY + SECOND, False)])
    def test_the_window_includes_its_end(self, late: timedelta, runs: bool) -> None:
        due = utc("2026-01-01T09:00")

        plan = plan_date(due, due + late, DAY)

        assert (plan.run is not None, plan.missed is None) == (runs, runs)
        assert plan.next_run_at is None

    def test_a_late_occurrence_is_missed_with_a_reason(self) -> None:
        due = utc("2026-01-01T09:00")

        plan = plan_date(due, utc("2026-01-05"), DAY)

        assert plan.missed == Missed(
            first=due,
            last=due,
            count=1,
            key="date-2026-1-1-9-0",
            reason="Missed the run at 2026-01-01 09:00 UTC: no producer ran within the catch-up window of 1 day.",
        )

    def test_before_its_time_it_waits(self) -> None:
        due = utc("2026-01-01T09:00")

        assert plan_date(due, due - SECOND, DAY) == Plan(run=None, missed=None, next_run_at=due)

    def test_it_is_planned_in_utc(self) -> None:
        due = resolve_wall(datetime(2026, 11, 1, 1, 30), NEW_YORK)

        plan = plan_date(due.astimezone(), due, DAY)

        assert plan.run == Due(utc("2026-11-01T05:30"), "date-2026-11-1-5-30")

    def test_naive_instants_are_refused(self) -> None:
        with pytest.raises(ValueError, match="needs a time zone"):
            plan_date(datetime(2026, 1, 1), utc("2026-01-01"), DAY)


class TestFirstRun:
    now = utc("2026-01-01T12:00")

    def test_cron(self) -> None:
        assert first_run("0 9 * * *", None, NEW_YORK, self.now) == utc("2026-01-01T14:00")

    def test_cron_due_this_instant_waits_for_the_next(self) -> None:
        assert first_run("0 12 * * *", None, "UTC", self.now) == utc("2026-01-02T12:00")

    @pytest.mark.parametrize("date_time", [utc("2026-02-01T09:00:30"), utc("2020-01-01")])
    def test_a_date_is_the_first_run(self, date_time: datetime) -> None:
        assert first_run("", date_time, "UTC", self.now) == date_time

    def test_without_expression_and_date_there_is_no_run(self) -> None:
        assert first_run("", None, "UTC", self.now) is None

    @pytest.mark.parametrize(
        ("schedule", "date_time", "tz", "error"),
        [
            ("0 24 * * *", None, "UTC", CronError),
            ("0 9 * * *", None, "Mars/Olympus", ZoneError),
            ("", datetime(2026, 1, 1), "UTC", ValueError),
        ],
    )
    def test_unusable_rows_are_refused(
        self, schedule: str, date_time: datetime | None, tz: str, error: type[Exception]
    ) -> None:
        with pytest.raises(error):
            first_run(schedule, date_time, tz, self.now)
