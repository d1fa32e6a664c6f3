"""Promise 1: every due instant is on record exactly once, whoever claims it."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection, connections
from django.utils import timezone as clock

from scheduling import claim
from scheduling.broker.database import DatabaseBroker
from scheduling.claim import claim_due, next_due
from scheduling.dispatch import run_now
from scheduling.models import Scheduler, SchedulerExecution
from tests.support import NOON, due, scheduler


@pytest.fixture(autouse=True)
def only_ours(db: None) -> None:
    """The nightly cleanup is an ordinary row; these tests count rows."""
    Scheduler.objects.all().delete()


def test_a_due_row_is_claimed_once_and_moves_on() -> None:
    row = due(scheduler(schedule="0 12 * * *", params={}), NOON)
    done = claim_due(NOON, embedded=True)
    again = claim_due(NOON, embedded=True)
    row.refresh_from_db()
    assert [each.execution_key for each in done.claimed] == ["cron-2026-3-10-12-0"]
    assert again.claimed == []
    assert row.next_run_at == NOON + timedelta(days=1)
    execution = SchedulerExecution.objects.get()
    assert (execution.state, execution.scheduled_at, execution.attempt) == ("queued", NOON, 0)
    assert execution.target_name == "tests.noop"


def test_what_is_not_due_costs_one_look() -> None:
    due(scheduler(), NOON)
    assert next_due() == NOON
    assert claim_due(NOON - timedelta(seconds=1), embedded=True).claimed == []


def test_a_key_that_is_taken_is_not_claimed_again() -> None:
    """A restored backup, or clocks that disagree: the unique key arbitrates."""
    row = due(scheduler(schedule="0 12 * * *"), NOON)
    other = due(scheduler(schedule="0 12 * * *"), NOON)
    claim_due(NOON, embedded=True)
    due(row, NOON)
    due(other, NOON)
    assert claim_due(NOON, embedded=True).claimed == []
    assert SchedulerExecution.objects.count() == 2
    row.refresh_from_db()
    assert row.next_run_at == NOON + timedelta(days=1)


def test_missed_occurrences_run_once_and_are_counted_once() -> None:
    due(scheduler(schedule="*/10 * * * *"), NOON)
    done = claim_due(NOON + timedelta(minutes=35), embedded=True)
    assert [each.execution_key for each in done.claimed] == ["cron-2026-3-10-12-30"]
    skipped = SchedulerExecution.objects.get(state="skipped")
    assert (skipped.missed, skipped.scheduled_at, skipped.execution_key) == (3, NOON, "cron-2026-3-10-12-0")
    assert "Missed 3 occurrences" in skipped.reason


def test_beyond_the_catch_up_window_nothing_runs() -> None:
    row = due(scheduler(schedule="0 12 * * *"), NOON)
    now = NOON + timedelta(days=1, hours=23)
    done = claim_due(now, embedded=True)  # the latest is 23 hours old
    assert len(done.claimed) == 1
    due(row, NOON + timedelta(days=10))
    Scheduler.objects.filter(pk=row.pk).update(schedule="0 12 20 * *", planned_schedule="0 12 20 * *")
    claim_due(NOON + timedelta(days=13), embedded=True)
    assert SchedulerExecution.objects.filter(state="skipped", execution_key="cron-2026-3-20-12-0", missed=1).exists()


def test_a_one_time_schedule_runs_once_and_switches_itself_off() -> None:
    at = clock.now() + timedelta(hours=1)
    row = scheduler(date_time=at)
    assert row.next_run_at == at
    assert len(claim_due(at + timedelta(seconds=1), embedded=True).claimed) == 1
    row.refresh_from_db()
    assert (row.status, row.next_run_at, row.plan_stale) == (False, None, 0)
    assert SchedulerExecution.objects.get().trigger == "date"


def test_switched_off_after_it_fell_due_is_on_record_as_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOON + timedelta(seconds=1))
    row = due(scheduler(schedule="0 12 * * *"), NOON)
    row.status = False
    row.save()
    claim_due(NOON + timedelta(seconds=1), embedded=True)
    execution = SchedulerExecution.objects.get()
    assert (execution.state, execution.execution_key) == ("skipped", "cron-2026-3-10-12-0")
    assert "switched off" in execution.reason
    row.refresh_from_db()
    assert row.next_run_at is None


def on_record() -> dict[str, tuple[str, int]]:
    rows = SchedulerExecution.objects.values_list("execution_key", "state", "missed")
    return {key: (state, missed) for key, state, missed in rows}


def claimed_all(now: datetime) -> None:
    while claim_due(now, embedded=True).full:
        pass


@pytest.fixture
def at_half_past_six(monkeypatch: pytest.MonkeyPatch) -> datetime:
    """Producers have not run since noon."""
    now = NOON + timedelta(hours=6, minutes=30)
    monkeypatch.setattr(clock, "now", lambda: now)
    return now


@pytest.mark.parametrize("change", [{"status": False}, {"schedule": "0 0 1 1 *"}, {"timezone": "Europe/Madrid"}])
@pytest.mark.parametrize("fields", [False, True])
def test_what_was_missed_before_an_edit_is_on_record(
    at_half_past_six: datetime, change: dict[str, Any], fields: bool
) -> None:
    row = due(scheduler(schedule="0 * * * *"), NOON)
    for name, value in change.items():
        setattr(row, name, value)
    row.save(update_fields=[*change] if fields else None)
    assert on_record() == {"cron-2026-3-10-12-0": ("skipped", 6)}
    row.refresh_from_db()
    assert row.next_run_at == NOON + timedelta(hours=6)
    claimed_all(at_half_past_six)
    assert on_record()["cron-2026-3-10-18-0"][0] == ("queued" if row.status else "skipped")
    assert sum(missed or 1 for _state, missed in on_record().values()) == 7
    SchedulerExecution.objects.all().delete()
    row.description = "another"
    row.save()
    claimed_all(at_half_past_six)
    assert on_record() == {}


def test_an_edit_of_something_else_counts_nothing(at_half_past_six: datetime) -> None:
    row = due(scheduler(schedule="0 * * * *"), NOON)
    row.description = "another"
    row.save()
    assert on_record() == {}
    claimed_all(at_half_past_six)
    assert on_record() == {"cron-2026-3-10-12-0": ("skipped", 6), "cron-2026-3-10-18-0": ("queued", 0)}


def test_what_a_producer_has_counted_is_not_counted_again(at_half_past_six: datetime) -> None:
    row = due(scheduler(schedule="0 * * * *"), NOON)
    stale = Scheduler.objects.get(pk=row.pk)
    claimed_all(at_half_past_six)
    before = on_record()
    stale.status = False
    stale.save()
    due(row, NOON)  # a restored backup
    row.refresh_from_db()
    row.schedule = "5 * * * *"
    row.save()
    assert on_record() == before


def test_a_bad_row_is_set_aside_and_the_others_run() -> None:
    bad = due(scheduler(), NOON)
    Scheduler.objects.filter(pk=bad.pk).update(schedule="nonsense", planned_schedule="nonsense")
    due(scheduler(schedule="0 12 * * *"), NOON)
    done = claim_due(NOON, embedded=True)
    assert (len(done.claimed), done.broken) == (1, 1)
    bad.refresh_from_db()
    assert bad.plan_error
    assert bad.next_run_at is None


def test_cron_changed_to_a_date_in_the_due_second_keeps_both() -> None:
    row = due(scheduler(schedule="* * * * *"), clock.now().replace(second=0, microsecond=0))
    instant, at = row.next_run_at, clock.now() + timedelta(hours=2)
    row.schedule, row.date_time = "", at
    row.save()
    claim_due(clock.now(), embedded=True)
    row.refresh_from_db()
    assert (row.next_run_at, row.status) == (at, True)
    assert SchedulerExecution.objects.get().scheduled_at == instant


def test_run_now_is_idempotent_under_a_key() -> None:
    import uuid

    row, key = scheduler(params={}), uuid.uuid4()
    first = run_now(row, DatabaseBroker(), by="ann", params={"a": 1}, key=key)
    second = run_now(row, DatabaseBroker(), by="bob", key=key)
    assert (first.pk, first.requested_by, first.params) == (second.pk, "ann", {"a": 1})
    assert run_now(row, DatabaseBroker()).pk != first.pk


@pytest.mark.django_db(transaction=True)
def test_four_producers_at_once_claim_each_occurrence_once() -> None:
    Scheduler.objects.all().delete()
    rows = [scheduler(schedule="0 12 * * *") for _ in range(60)]
    Scheduler.objects.filter(pk__in=[row.pk for row in rows]).update(next_run_at=NOON)
    barrier, claimed, errors = threading.Barrier(4), [], []

    def produce() -> None:
        try:
            barrier.wait(10)
            while True:
                done = claim_due(NOON, embedded=True, limit=7)
                claimed.extend(each.pk for each in done.claimed)
                if not done.full:
                    break
        except Exception as error:
            errors.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=produce) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert len(claimed) == len(set(claimed)) == 60
    assert SchedulerExecution.objects.count() == 60


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("times", [8])
def test_the_unique_key_alone_keeps_racing_claims_apart(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two producers that both believe a row is due, as with a restored backup: insert against insert."""
    Scheduler.objects.all().delete()
    row = due(scheduler(schedule="0 12 * * *"), NOON)
    values = claim._Row(*Scheduler.objects.filter(pk=row.pk).values_list(*claim._COLUMNS).get())
    barrier, won = threading.Barrier(times), []

    def race() -> None:
        try:
            barrier.wait(10)
            done = claim.Dispatched()
            claim._claim([values], NOON, True, done)
            won.extend(done.claimed)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=race) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(won) == 1
    assert SchedulerExecution.objects.count() == 1
    assert connection.is_usable()
