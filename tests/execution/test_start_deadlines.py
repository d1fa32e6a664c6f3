"""An occurrence that has not started by its deadline is skipped, wherever it waited. It never starts after it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from django.db import connection

from scheduling.broker import Delivery
from scheduling.broker.database import DatabaseBroker
from scheduling.consumer.deferral import Deferral
from scheduling.consumer.place_gate import PlaceGate
from scheduling.consumer.start import MANY, Arrival, begin
from scheduling.core.queues import MAIN
from scheduling.execution.claim import claim_due
from scheduling.execution.run_now import run_now
from scheduling.execution.start_deadlines import expire, sweep_deadlines
from scheduling.handlers.run_config import RunConfigs
from scheduling.models import LimitPlace, Scheduler, SchedulerExecution, StartDeadline, Tally, UncountedSkip
from scheduling.models.execution import message_of
from scheduling.processes.identity import container_id
from scheduling.producer.blocked_runs import sweep_blocked
from scheduling.producer.sweeps import sweep
from tests.factories import SchedulerFactory, due
from tests.hostile.values import lenient
from tests.support import NOON

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)
BROKER = DatabaseBroker()


def hurried(**columns: object) -> Scheduler:
    """Make a schedule whose occurrences must start within a minute."""
    columns = {"schedule": "0 * * * *", "params": {}, "start_within_seconds": 60, **columns}
    row: Scheduler = SchedulerFactory(**columns)
    return due(row, NOON)


def claimed(now: datetime = NOON, *, embedded: bool = True) -> SchedulerExecution:
    (row,) = claim_due(now, embedded=embedded).claimed
    row.refresh_from_db()
    return row


def started(rows: Sequence[SchedulerExecution], now: datetime, *, from_row: bool = True) -> list[Arrival]:
    deliveries = [Delivery(message_of(row), from_row=from_row) for row in rows]
    return begin(deliveries, container_id(), now, now + MINUTE)


def test_an_occurrence_that_has_started_in_time_does_not_expire() -> None:
    hurried()
    row = claimed()
    assert row.start_by == NOON + MINUTE
    assert StartDeadline.objects.values_list("execution", "start_by").get() == (row.pk, NOON + MINUTE)
    (arrival,) = started([row], NOON + MINUTE - timedelta(seconds=1))
    row.refresh_from_db()
    assert (arrival.started, row.state) == (True, "running")
    assert sweep_deadlines(NOON + 2 * MINUTE) == 0
    assert not StartDeadline.objects.exists()
    row.refresh_from_db()
    assert row.state == "running"


def test_an_occurrence_that_waited_for_a_producer_is_skipped_at_its_claim() -> None:
    hurried()
    done = claim_due(NOON + 5 * MINUTE, embedded=True)
    assert (done.claimed, done.skipped) == ([], 1)
    row = SchedulerExecution.objects.get()
    said = "Expired: it had not started 1 minute after it was due. It waited 5 minutes until a producer claimed it."
    assert (row.state, row.missed, row.reason) == ("skipped", 1, said)
    assert UncountedSkip.objects.get().reason == "expired"
    assert not StartDeadline.objects.exists()


@pytest.mark.parametrize("embedded", [True, False])
@pytest.mark.parametrize("count", [1, MANY])
def test_a_consumer_does_not_start_what_has_expired(count: int, embedded: bool) -> None:
    rows = []
    for _ in range(count):
        hurried()
        rows.append(claimed(embedded=embedded))
    arrivals = started(rows, NOON + MINUTE, from_row=embedded)
    assert not any(arrival.started for arrival in arrivals)
    for row in rows:
        row.refresh_from_db()
        assert (row.state, row.attempt, row.wake_at) == ("skipped", 0, None)
        assert row.reason.endswith("It waited 1 minute in the queue main for a free consumer.")
    assert UncountedSkip.objects.count() == count


def test_a_run_that_nothing_takes_ends_by_itself() -> None:
    hurried()
    row = claimed()
    SchedulerExecution.objects.update(wake_at=NOON + 60 * MINUTE, deferred_at=NOON, reason="Paused by ann: deploy.")
    assert sweep(BROKER, NOON + MINUTE - timedelta(seconds=1)).expired == 0
    assert sweep(BROKER, NOON + MINUTE).expired == 1
    row.refresh_from_db()
    assert row.reason.endswith("It waited 1 minute in the queue main: Paused by ann: deploy.")
    assert not StartDeadline.objects.exists()
    assert dict(Tally.objects.values_list("reason", "skips")) == {"expired": 1}


def test_what_waits_for_its_turn_expires_too() -> None:
    row = hurried(overlap="wait")
    first = claimed()
    started([first], NOON)
    due(row, NOON + MINUTE)
    assert claim_due(NOON + MINUTE, embedded=True).claimed == []
    assert sweep_deadlines(NOON + 2 * MINUTE) == 1
    second = SchedulerExecution.objects.exclude(pk=first.pk).get()
    assert second.reason.endswith(f"It waited 1 minute for its turn: It waits until execution {first.pk} is over.")
    SchedulerExecution.objects.filter(pk=first.pk).update(state="succeeded")
    assert sweep_blocked(BROKER, NOON + 3 * MINUTE) == 0
    due(row, NOON + 3 * MINUTE)
    assert len(claim_due(NOON + 3 * MINUTE, embedded=True).claimed) == 1


def test_what_waits_for_a_run_that_expires_has_its_turn() -> None:
    row = hurried(overlap="wait")
    claimed()
    Scheduler.objects.update(start_within_seconds=None)
    due(row, NOON + timedelta(seconds=30))
    assert claim_due(NOON + timedelta(seconds=30), embedded=True).claimed == []
    found = sweep(BROKER, NOON + MINUTE)
    assert (found.expired, found.let_in) == (1, 1)


def test_a_retry_has_no_deadline() -> None:
    hurried()
    row = claimed()
    started([row], NOON)
    SchedulerExecution.objects.update(state="retrying", wake_at=NOON + 5 * MINUTE, attempt=1)
    row.refresh_from_db()
    assert expire([row.pk], NOON + 5 * MINUTE) == []
    (arrival,) = started([row], NOON + 5 * MINUTE)
    assert arrival.started


def test_a_run_that_was_interrupted_has_no_deadline() -> None:
    hurried()
    row = claimed()
    SchedulerExecution.objects.update(state="queued", attempt=1)
    row.refresh_from_db()
    sweep_deadlines(NOON + 2 * MINUTE)
    (arrival,) = started([row], NOON + 2 * MINUTE)
    assert arrival.started


def test_run_now_has_no_deadline() -> None:
    row = hurried()
    assert run_now(row, BROKER).start_by is None
    assert not StartDeadline.objects.exists()


def test_an_expired_run_takes_no_place_of_a_limit() -> None:
    hurried(handler="tests.two_at_once", params={"directory": "."})
    row = claimed()
    configs = RunConfigs()
    deferral = Deferral(configs, PlaceGate(BROKER, [MAIN]), embedded=True)
    now = NOON + MINUTE
    delivery = Delivery(message_of(row), from_row=True, queue=MAIN)
    (arrival,) = begin(
        [delivery], container_id(), now, now + MINUTE, configs.prepare, lambda found: deferral.defer(found, now)
    )
    row.refresh_from_db()
    assert (arrival.started, row.state, LimitPlace.objects.count()) == (False, "skipped", 0)


def test_a_sweep_takes_the_oldest_deadlines_first_and_leaves_no_others() -> None:
    for number in range(3):
        hurried()
        claimed(NOON + timedelta(seconds=number))
    assert sweep_deadlines(NOON + 5 * MINUTE, limit=2) == 2
    assert sweep_deadlines(NOON + 5 * MINUTE, limit=2) == 1
    assert sweep_deadlines(NOON + 5 * MINUTE, limit=2) == 0


@pytest.mark.parametrize("value", [0, 10**9])
def test_a_value_out_of_bounds_that_plain_sql_has_stored_is_no_deadline(value: int) -> None:
    hurried()
    Scheduler.objects.update(start_within_seconds=value)
    assert claimed(NOON + 5 * MINUTE).start_by is None


@pytest.mark.skipif(connection.vendor != "sqlite", reason="other databases refuse such a value")
def test_a_row_that_cannot_be_read_is_set_aside_and_the_others_end() -> None:
    rows = []
    for _ in range(2):
        hurried()
        rows.append(claimed())
    with lenient(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE scheduling_schedulerexecution SET executed_at = %s WHERE id = %s", ["2026-13-45 00:00", rows[0].pk]
        )
    assert sweep_deadlines(NOON + MINUTE) == 1
    states = SchedulerExecution.objects.order_by("pk").values_list("state", flat=True)
    assert list(states) == ["failed", "skipped"]
