"""Promise 1 of README.md: each due instant is recorded exactly once, however many producers run."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.execution import claim
from scheduling.execution.claim import claim_due, next_due
from scheduling.execution.due_row import COLUMNS, due_row
from scheduling.execution.insert import execution_of, insert, skipped
from scheduling.execution.run_now import run_now
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.testing import travel
from tests.factories import SchedulerFactory, due
from tests.support import NOON, at_once

pytestmark = pytest.mark.django_db


def test_a_due_row_is_claimed_once_and_moves_on() -> None:
    row = due(SchedulerFactory(schedule="0 12 * * *", params={}), NOON)
    done = claim_due(NOON, embedded=True)
    again = claim_due(NOON, embedded=True)
    row.refresh_from_db()
    assert [execution.execution_key for execution in done.claimed] == ["cron-2026-3-10-12-0"]
    assert again.claimed == []
    assert row.next_run_at == NOON + timedelta(days=1)
    execution = SchedulerExecution.objects.get()
    assert (execution.state, execution.scheduled_at, execution.attempt) == ("queued", NOON, 0)
    assert execution.target_name == "tests.noop"


def test_a_schedule_that_is_not_due_is_not_claimed() -> None:
    due(SchedulerFactory(rare=True), NOON)
    assert next_due() == NOON
    assert claim_due(NOON - timedelta(seconds=1), embedded=True).claimed == []


def test_a_key_that_is_taken_is_not_claimed_again() -> None:
    """A schedule can be due again for a time that was claimed already. The unique key refuses the second claim.

    This happens after a backup was restored, or if the clocks of the producers differ.
    """
    row = due(SchedulerFactory(schedule="0 12 * * *"), NOON)
    other = due(SchedulerFactory(schedule="0 12 * * *"), NOON)
    claim_due(NOON, embedded=True)
    due(row, NOON)
    due(other, NOON)
    assert claim_due(NOON, embedded=True).claimed == []
    assert SchedulerExecution.objects.count() == 2
    row.refresh_from_db()
    assert row.next_run_at == NOON + timedelta(days=1)


def test_missed_occurrences_run_once_and_are_counted_once() -> None:
    due(SchedulerFactory(schedule="*/10 * * * *"), NOON)
    done = claim_due(NOON + timedelta(minutes=35), embedded=True)
    assert [execution.execution_key for execution in done.claimed] == ["cron-2026-3-10-12-30"]
    skipped = SchedulerExecution.objects.get(state="skipped")
    assert (skipped.missed, skipped.scheduled_at, skipped.execution_key) == (3, NOON, "cron-2026-3-10-12-0")
    assert "Missed 3 occurrences" in skipped.reason


def test_beyond_the_catch_up_window_nothing_runs() -> None:
    row = due(SchedulerFactory(schedule="0 12 * * *"), NOON)
    now = NOON + timedelta(days=1, hours=23)
    done = claim_due(now, embedded=True)  # the last occurrence is 23 hours old, so it still runs
    assert len(done.claimed) == 1
    due(row, NOON + timedelta(days=10))
    Scheduler.objects.filter(pk=row.pk).update(schedule="0 12 20 * *", planned_schedule="0 12 20 * *")
    claim_due(NOON + timedelta(days=13), embedded=True)
    assert SchedulerExecution.objects.filter(state="skipped", execution_key="cron-2026-3-20-12-0", missed=1).exists()


def test_a_one_time_schedule_runs_once_and_switches_itself_off() -> None:
    at = clock.now() + timedelta(hours=1)
    row = SchedulerFactory(schedule="", date_time=at)
    assert row.next_run_at == at
    assert len(claim_due(at + timedelta(seconds=1), embedded=True).claimed) == 1
    row.refresh_from_db()
    assert (row.status, row.next_run_at, row.plan_state) == (False, None, 0)
    assert SchedulerExecution.objects.get().trigger == "date"


def test_a_due_occurrence_is_skipped_when_the_schedule_is_paused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOON + timedelta(seconds=1))
    row = due(SchedulerFactory(schedule="0 12 * * *"), NOON)
    row.status = False
    row.save()
    claim_due(NOON + timedelta(seconds=1), embedded=True)
    execution = SchedulerExecution.objects.get()
    assert (execution.state, execution.execution_key) == ("skipped", "cron-2026-3-10-12-0")
    assert "was paused" in execution.reason
    row.refresh_from_db()
    assert row.next_run_at is None


def recorded() -> dict[str, tuple[str, int]]:
    rows = SchedulerExecution.objects.values_list("execution_key", "state", "missed")
    return {key: (state, missed) for key, state, missed in rows}


def claim_all(now: datetime) -> None:
    while claim_due(now, embedded=True).full:
        pass


@pytest.fixture
def now_is_half_past_six(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """Set the clock to 18:30 and return this time."""
    now = NOON + timedelta(hours=6, minutes=30)
    monkeypatch.setattr(clock, "now", lambda: now)
    return now


@pytest.mark.parametrize("change", [{"status": False}, {"schedule": "0 0 1 1 *"}, {"timezone": "Europe/Madrid"}])
@pytest.mark.parametrize("fields", [False, True])
def test_occurrences_missed_before_an_edit_are_recorded(
    now_is_half_past_six: datetime, change: dict[str, Any], fields: bool
) -> None:
    row = due(SchedulerFactory(schedule="0 * * * *"), NOON)
    for name, value in change.items():
        setattr(row, name, value)
    row.save(update_fields=[*change] if fields else None)
    assert recorded() == {"cron-2026-3-10-12-0": ("skipped", 6)}
    row.refresh_from_db()
    assert row.next_run_at == NOON + timedelta(hours=6)
    claim_all(now_is_half_past_six)
    assert recorded()["cron-2026-3-10-18-0"][0] == ("queued" if row.status else "skipped")
    assert sum(missed or 1 for _state, missed in recorded().values()) == 7
    SchedulerExecution.objects.all().delete()
    row.description = "another"
    row.save()
    claim_all(now_is_half_past_six)
    assert recorded() == {}


def test_an_edit_of_another_field_counts_nothing(now_is_half_past_six: datetime) -> None:
    row = due(SchedulerFactory(schedule="0 * * * *"), NOON)
    row.description = "another"
    row.save()
    assert recorded() == {}
    claim_all(now_is_half_past_six)
    assert recorded() == {"cron-2026-3-10-12-0": ("skipped", 6), "cron-2026-3-10-18-0": ("queued", 0)}


def test_missed_occurrences_are_not_counted_twice(now_is_half_past_six: datetime) -> None:
    row = due(SchedulerFactory(schedule="0 * * * *"), NOON)
    stale = Scheduler.objects.get(pk=row.pk)
    claim_all(now_is_half_past_six)
    before = recorded()
    stale.status = False
    stale.save()
    due(row, NOON)  # the row has an old `next_run_at` again, for example because a backup was restored
    row.refresh_from_db()
    row.schedule = "5 * * * *"
    row.save()
    assert recorded() == before


def test_an_invalid_row_is_set_aside_and_the_others_run() -> None:
    bad = due(SchedulerFactory(rare=True), NOON)
    Scheduler.objects.filter(pk=bad.pk).update(schedule="nonsense", planned_schedule="nonsense")
    due(SchedulerFactory(schedule="0 12 * * *"), NOON)
    done = claim_due(NOON, embedded=True)
    assert (len(done.claimed), done.broken) == (1, 1)
    bad.refresh_from_db()
    assert bad.plan_error
    assert bad.next_run_at is None


def test_a_due_occurrence_is_kept_when_the_schedule_gets_a_date() -> None:
    row = due(SchedulerFactory(schedule="* * * * *"), clock.now().replace(second=0, microsecond=0))
    instant, at = row.next_run_at, clock.now() + timedelta(hours=2)
    row.schedule, row.date_time = "", at
    row.save()
    claim_due(clock.now(), embedded=True)
    row.refresh_from_db()
    assert (row.next_run_at, row.status) == (at, True)
    assert SchedulerExecution.objects.get().scheduled_at == instant


def test_run_now_is_idempotent_under_a_key() -> None:
    import uuid

    row, key = SchedulerFactory(rare=True, params={}), uuid.uuid4()
    first = run_now(row, DatabaseBroker(), by="ann", params={"a": 1}, key=key)
    second = run_now(row, DatabaseBroker(), by="bob", key=key)
    assert (first.pk, first.requested_by, first.params) == (second.pk, "ann", {"a": 1})
    assert run_now(row, DatabaseBroker()).pk != first.pk


@pytest.mark.django_db(transaction=True)
def test_four_producers_at_once_claim_each_occurrence_once() -> None:
    rows = [SchedulerFactory(schedule="0 12 * * *") for _ in range(60)]
    Scheduler.objects.filter(pk__in=[row.pk for row in rows]).update(next_run_at=NOON)

    def produce() -> list[int]:
        claimed: list[int] = []
        while True:
            done = claim_due(NOON, embedded=True, limit=7)
            claimed.extend(execution.pk for execution in done.claimed)
            if not done.full:
                return claimed

    claimed = [pk for part in at_once([produce] * 4) for pk in part]
    assert len(claimed) == len(set(claimed)) == 60
    assert SchedulerExecution.objects.count() == 60


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("times", [8])
def test_the_unique_key_alone_keeps_racing_claims_apart(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several producers read the same due row at the same time. Only one insert succeeds."""
    row = due(SchedulerFactory(schedule="0 12 * * *"), NOON)
    values = due_row(Scheduler.objects.filter(pk=row.pk).values_list(*COLUMNS).get())

    def race() -> int:
        done = claim.Dispatched()
        claim._claim([values], NOON, True, done)
        return len(done.claimed)

    won = at_once([race] * times)
    assert sum(won) == 1
    assert SchedulerExecution.objects.count() == 1
    assert connection.is_usable()


def test_new_execution_takes_queue_target_and_params_of_its_schedule_and_is_inserted_once() -> None:
    """A second insert with the same key returns an empty list, because the occurrence is already recorded."""
    now = clock.now()
    row = SchedulerFactory(stay_alive=True)
    columns = {"execution_key": "cron-1", "scheduled_at": now, "trigger": "cron", **skipped(now, "late", 2)}
    [first] = insert([execution_of(row, now, **columns)])
    assert insert([execution_of(row, now, **columns)]) == []
    first.refresh_from_db()
    assert (first.state, first.reason, first.missed, first.finished_at) == ("skipped", "late", 2, now)
    assert (first.type, first.target_name, first.params, first.queue) == (
        "worker", "tests.noop", {}, "standalone",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("own", "age", "runs"),
    [
        ({}, timedelta(hours=23), True),
        ({}, timedelta(hours=25), False),
        ({"missed_within_seconds": 3600}, timedelta(minutes=59), True),
        ({"missed_within_seconds": 3600}, timedelta(minutes=61), False),
        ({"missed_runs": "none"}, timedelta(minutes=2), False),
    ],
)
def test_the_last_occurrence_before_a_date_replaced_the_expression_may_be_too_old(
    own: dict[str, Any], age: timedelta, runs: bool
) -> None:
    date = NOON + timedelta(days=10)
    with travel(NOON - timedelta(hours=1)):
        row = SchedulerFactory(schedule="0 12 10 * *", timezone="UTC", **own)
    with travel(NOON + age):
        row.schedule, row.date_time = "", date
        row.save()
        claim_all(NOON + age)
    assert recorded() == {"cron-2026-3-10-12-0": ("queued", 0) if runs else ("skipped", 1)}
    row.refresh_from_db()
    assert (row.status, row.next_run_at) == (True, date)
