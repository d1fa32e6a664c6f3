"""Promise 3 of README.md: an execution leaves the failed inbox only by an operator's action."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.core.messages import TaskMessage
from scheduling.execution.cancel import cancel
from scheduling.execution.retention import prune
from scheduling.inbox.actions import discard, republish
from scheduling.models import SchedulerExecution
from scheduling.producer.sweeps import publish_claimed, sweep
from tests.factories import ManualExecutionFactory
from tests.support import at_once

pytestmark = pytest.mark.django_db
BROKER = DatabaseBroker()


def failed(count: int = 1) -> list[SchedulerExecution]:
    return ManualExecutionFactory.bulk(
        count, state="failed", wake_at=None, attempt=4, error_class="E", finished_at=clock.now()
    )


def states(rows: list[SchedulerExecution]) -> list[str]:
    return list(
        SchedulerExecution.objects.filter(pk__in=[row.pk for row in rows])
        .order_by("pk")
        .values_list("state", flat=True)
    )


def test_a_republish_keeps_the_attempts_and_allows_all_retries_again() -> None:
    (row,) = failed()
    assert republish([row.pk], BROKER, "ann") == [row.pk]
    row.refresh_from_db()
    assert (row.state, row.attempt, row.retry_base, row.reason) == ("queued", 4, 4, "Republished by ann.")
    (delivery,) = BROKER.take(["main"], 5, clock.now())
    assert (delivery.message.attempt, delivery.message.retry_count) == (5, 0)


def test_a_second_click_does_nothing() -> None:
    (row,) = failed()
    assert republish([row.pk], BROKER, "ann") == [row.pk]
    assert republish([row.pk], BROKER, "bob") == []
    assert discard([row.pk], "bob", "too late") == []


@pytest.mark.django_db(transaction=True)
def test_operators_at_the_same_time_republish_each_execution_once() -> None:
    rows = failed(20)
    ids = [row.pk for row in rows]
    moved = at_once([lambda: republish(ids, BROKER, "ann")] * 4)
    assert sorted(pk for part in moved for pk in part) == sorted(ids)


def test_discard_needs_a_reason_and_keeps_it() -> None:
    (row,) = failed()
    with pytest.raises(ValueError, match="Enter a reason"):
        discard([row.pk], "ann", "  ")
    assert discard([row.pk], "ann", "customer is gone") == [row.pk]
    row.refresh_from_db()
    assert (row.state, row.reason) == ("discarded", "Discarded by ann: customer is gone")


def test_sweeps_retention_and_cancel_do_not_remove_a_failure() -> None:
    rows = failed(3)
    later = clock.now() + timedelta(days=400)
    for _ in range(3):
        sweep(BROKER, later)
    prune(later, 1)
    assert cancel(rows[0].pk, "ann") == "over"
    assert BROKER.take(["main"], 10, later) == []
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
    row = ManualExecutionFactory(state=state)
    assert cancel(row.pk, "ann") == answer
    assert states([row]) == [after]
    assert BROKER.take(["main"], 1, clock.now()) == []


def test_a_spread_republish_starts_one_execution_after_another() -> None:
    rows, now = failed(4), clock.now()
    assert len(republish([row.pk for row in rows], BROKER, "ann", now, first=now, step=timedelta(minutes=5))) == 4
    assert len(BROKER.take(["main"], 9, now)) == 1
    assert len(DatabaseBroker().take(["main"], 9, now + timedelta(minutes=10, seconds=1))) == 3
    assert sweep(BROKER, now + timedelta(minutes=1)).claims == 0


class Remote(DatabaseBroker):
    """A transport outside the database. It confirms every message."""

    embedded = False

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[int] = []

    def publish(self, messages: Sequence[TaskMessage], queue: str) -> set[int]:
        """Record and confirm the messages."""
        found = [message.execution_id or 0 for message in messages]
        self.sent += found
        return set(found)


def test_sweep_publishes_each_spread_republish_once_when_due() -> None:
    broker, rows, now = Remote(), failed(3), clock.now()
    ids = [row.pk for row in rows]
    republish(ids, broker, "ann", now, first=now, step=timedelta(minutes=5))
    assert broker.sent == []
    assert states(rows) == ["claimed"] * 3
    for minutes, sent in ((1, 1), (2, 1), (6, 2), (7, 2), (11, 3), (30, 3)):
        publish_claimed(broker, now + timedelta(minutes=minutes))
        assert broker.sent == ids[:sent], minutes
    assert states(rows) == ["queued"] * 3
