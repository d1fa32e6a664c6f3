"""Tests of the order in which the database transport returns executions."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.utils import timezone as clock

from scheduling.broker.database import READ_AHEAD, DatabaseBroker
from tests.factories import SchedulerExecutionFactory

pytestmark = pytest.mark.django_db(transaction=True)


def taken(limit: int) -> list[int | None]:
    with transaction.atomic():
        return [delivery.message.execution_id for delivery in DatabaseBroker().take(["main"], limit, clock.now())]


@pytest.mark.parametrize("retries", [0, 3, READ_AHEAD * 2])
def test_a_recovered_run_goes_before_the_backlog_and_before_other_retries(retries: int) -> None:
    """With many due retries, the recovered one is not among the oldest ones."""
    past = clock.now() - timedelta(hours=1)
    backlog = [SchedulerExecutionFactory(wake_at=past + timedelta(seconds=number)) for number in range(3)]
    for number in range(retries):
        SchedulerExecutionFactory(retrying=True, wake_at=past - timedelta(seconds=number + 1))
    recovered = SchedulerExecutionFactory(retrying=True, error_class="Crashed", wake_at=clock.now())
    waits = SchedulerExecutionFactory(retrying=True, error_class="Crashed", wake_at=clock.now() + timedelta(minutes=1))
    ids = taken(retries + 10)
    assert ids[0] == recovered.pk
    assert ids[-3:] == [row.pk for row in backlog]
    assert len(ids) == len(set(ids)) == retries + 4
    assert waits.pk not in ids
    assert taken(1) == [recovered.pk]


def test_only_the_runs_of_chosen_handlers_are_taken() -> None:
    past = clock.now() - timedelta(hours=1)
    kinds = {"worker": ("tests.noop", "tests.mark"), "report": ("tests.noop",), "reminder": ("to all",)}
    pks = {}
    for type_, names in kinds.items():
        for name in names:
            for columns in ({}, {"retrying": True}, {"retrying": True, "error_class": "Crashed"}):
                row = SchedulerExecutionFactory(type=type_, target_name=name, wake_at=past, **columns)
                pks.setdefault((type_, name), set()).add(row.pk)
    broker = DatabaseBroker()

    def found(*handlers: tuple[str, str]) -> set[int | None]:
        broker.choose(handlers)
        with transaction.atomic():
            ready, rows = broker.ready(["main"], clock.now()), broker.take(["main"], 50, clock.now())
        assert ready is bool(rows)
        return {delivery.message.execution_id for delivery in rows}

    assert found(("worker", "tests.noop")) == pks["worker", "tests.noop"]
    assert (
        found(("report", "tests.noop"), ("reminder", "send")) == pks["report", "tests.noop"] | pks["reminder", "to all"]
    )
    assert found(("worker", "tests.other")) == set()
    assert found(*((type_, "send" if type_ == "reminder" else name) for type_, name in pks)) == set().union(
        *pks.values()
    )
