"""A producer that marks its messages as published and a consumer that starts them never wait for each other."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone as clock

from scheduling.broker import Delivery
from scheduling.consumer.start import MANY, begin
from scheduling.core.chunks import KEYS_PER_STATEMENT
from scheduling.core.lifecycle import CLAIM_GRACE
from scheduling.execution.publish import mark_published
from scheduling.models import SchedulerExecution
from scheduling.models.execution import message_of
from tests.factories import ManualExecutionFactory
from tests.support import at_once

pytestmark = pytest.mark.django_db(transaction=True)

ROUNDS = 3
PAUSE_BEFORE = 4
"""The statement before which the start pauses. Some rows are locked by then, one by one or all at once."""
HEAD_START_SECONDS = 0.5


class Count:
    """An execute wrapper that pauses after a number of statements, so that the other thread takes its locks."""

    def __init__(self, number: int) -> None:
        self._left, self.reached, self.locked = number, threading.Event(), threading.Event()

    def __call__(self, execute: Any, *arguments: Any) -> Any:
        self._left -= 1
        if self._left == 0:
            self.reached.set()
            self.locked.wait(HEAD_START_SECONDS)
        return execute(*arguments)


@pytest.mark.parametrize("rows", [MANY - 1, KEYS_PER_STATEMENT + 200], ids=["one by one", "together"])
def test_marking_and_starting_lock_rows_in_one_order(rows: int) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite locks the whole file")
    for _round in range(ROUNDS):
        SchedulerExecution.objects.all().delete()
        now = clock.now()
        waits = {"state": "claimed", "wake_at": now + CLAIM_GRACE, "published_at": None}
        keys = [row.pk for row in ManualExecutionFactory.bulk(rows, **waits)]
        # Messages come back in any order, for example after a reconnect.
        shuffled = sorted(SchedulerExecution.objects.all(), key=lambda row: random.random())
        start_and_mark([Delivery(message_of(row)) for row in shuffled], keys)
        assert set(SchedulerExecution.objects.values_list("state", flat=True)) == {"running"}


def start_and_mark(deliveries: list[Delivery], keys: list[int]) -> None:
    """Start all deliveries in one transaction. When rows are locked, mark all rows in another transaction."""
    some = Count(PAUSE_BEFORE)

    def start() -> None:
        with connection.execute_wrapper(some), transaction.atomic():
            assert len(begin(deliveries, "host-1-ab", clock.now(), clock.now() + CLAIM_GRACE)) == len(deliveries)

    def mark() -> None:
        assert some.reached.wait(30)
        mark_published(keys, clock.now())
        some.locked.set()

    at_once([start, mark])


def test_a_row_that_has_started_is_not_marked() -> None:
    claimed = ManualExecutionFactory(state="claimed", published_at=None)
    running = ManualExecutionFactory(running=True)
    assert mark_published([running.pk, claimed.pk], clock.now()) == 1
    assert SchedulerExecution.objects.get(pk=claimed.pk).state == "queued"
    assert SchedulerExecution.objects.get(pk=running.pk).state == "running"
