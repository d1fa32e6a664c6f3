"""Promise 3: nothing leaves the failed inbox but by an operator's action or a retention rule."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connections
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.cancel import cancel
from scheduling.failed import discard, republish
from scheduling.models import SchedulerExecution
from scheduling.prune import prune
from scheduling.reconcile import sweep
from tests.support import queued, scheduler

pytestmark = pytest.mark.django_db
BROKER = DatabaseBroker()


def failed(count: int = 1) -> list[SchedulerExecution]:
    return queued(scheduler(), count, state="failed", wake_at=None, attempt=4, error_class="E", finished_at=clock.now())


def states(rows: list[SchedulerExecution]) -> list[str]:
    return list(
        SchedulerExecution.objects.filter(pk__in=[row.pk for row in rows])
        .order_by("pk")
        .values_list("state", flat=True)
    )


def test_republished_runs_again_with_its_retries_and_keeps_its_attempts() -> None:
    (row,) = failed()
    assert republish([row.pk], BROKER, "ann") == [row.pk]
    row.refresh_from_db()
    assert (row.state, row.attempt, row.retry_base, row.reason) == ("queued", 4, 4, "Republished by ann.")
    (delivery,) = BROKER.take("main", 5, clock.now())
    assert (delivery.message.attempt, delivery.message.retry_count) == (5, 0)


def test_a_second_click_does_nothing() -> None:
    (row,) = failed()
    assert republish([row.pk], BROKER, "ann") == [row.pk]
    assert republish([row.pk], BROKER, "bob") == []
    assert discard([row.pk], "bob", "too late") == []


@pytest.mark.django_db(transaction=True)
def test_two_operators_at_once_send_it_once() -> None:
    rows = failed(20)
    ids, barrier, moved = [row.pk for row in rows], threading.Barrier(4), []

    def click() -> None:
        try:
            barrier.wait(10)
            moved.extend(republish(ids, BROKER, "somebody"))
        finally:
            connections.close_all()

    threads = [threading.Thread(target=click) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(moved) == sorted(ids)


def test_discard_needs_a_reason_and_keeps_it() -> None:
    (row,) = failed()
    with pytest.raises(ValueError, match="Say why"):
        discard([row.pk], "ann", "  ")
    assert discard([row.pk], "ann", "customer is gone") == [row.pk]
    row.refresh_from_db()
    assert (row.state, row.reason) == ("discarded", "Discarded by ann: customer is gone")


def test_nothing_else_takes_it_out() -> None:
    rows = failed(3)
    later = clock.now() + timedelta(days=400)
    for _ in range(3):
        sweep(BROKER, later)
    prune(later, 1)
    assert cancel(rows[0].pk, "ann") == "over"
    assert BROKER.take("main", 10, later) == []
    assert states(rows) == ["failed"] * 3


@pytest.mark.parametrize(
    ("state", "answer", "after"),
    [
        ("claimed", "cancelled", "cancelled"),
        ("queued", "cancelled", "cancelled"),
        ("retrying", "cancelled", "cancelled"),
        ("running", "asked", "running"),
        ("succeeded", "over", "succeeded"),
        ("failed", "over", "failed"),
    ],
)
def test_cancel(state: str, answer: str, after: str) -> None:
    (row,) = queued(scheduler(), state=state)
    assert cancel(row.pk, "ann") == answer
    assert states([row]) == [after]
    assert BROKER.take("main", 1, clock.now()) == []
