"""Each permanent failure is reported once, whatever made the execution fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone as clock

from scheduling.broker import Parked, get_broker
from scheduling.handlers.run_config import RunConfigs
from scheduling.inbox.delivery_limit import give_up
from scheduling.inbox.parked_rows import GAVE_UP, make_rows
from scheduling.models import SchedulerExecution
from scheduling.models.execution import message_of
from scheduling.processes.set_aside import fail_row
from scheduling.producer.sweeps import recover_leases
from scheduling.signals import execution_failed
from tests.factories import EventFactory, SchedulerExecutionFactory, SchedulerFactory
from tests.parked_messages import original_body

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def heard() -> Iterator[list[dict[str, Any]]]:
    """Collect the arguments of each signal."""
    found: list[dict[str, Any]] = []

    def hear(signal: object, sender: object, **facts: Any) -> None:
        found.append(facts)

    execution_failed.connect(hear)
    yield found
    execution_failed.disconnect(hear)


def test_a_message_that_the_broker_gave_up_is_reported_once(heard: list[dict[str, Any]]) -> None:
    row = SchedulerExecutionFactory(scheduler=SchedulerFactory(rare=True))
    for _ in range(2):
        give_up([(message_of(row), ())], clock.now())
    (facts,) = heard
    row.refresh_from_db()
    assert (row.state, facts["execution_id"], facts["scheduler_id"]) == ("failed", row.pk, row.scheduler_id)
    assert (facts["error_class"], facts["reason"], facts["target_name"]) == ("DeliveryLimit", GAVE_UP, row.target_name)
    assert (facts["attempts"], facts["retry_count"], facts["failed_at"]) == (0, 0, row.finished_at)


def foreign(number: int) -> Parked:
    """Return a message in the failed queue that another program has parked."""
    return Parked(original_body(scheduler_id=None), f"m{number}")


def test_foreign_failures_are_reported_once(heard: list[dict[str, Any]]) -> None:
    messages = [foreign(1), foreign(2), Parked(b"no message", "m3")]
    make_rows(messages, clock.now())
    assert sorted(facts["error_class"] for facts in heard) == ["Failed", "Failed", "UnreadableMessage"]
    assert {facts["execution_id"] for facts in heard} == set(SchedulerExecution.objects.values_list("pk", flat=True))
    assert [facts["error_message"] for facts in heard if facts["error_class"] == "Failed"] == 2 * ["Connection timeout"]


def test_a_row_that_cannot_be_used_is_reported(heard: list[dict[str, Any]]) -> None:
    row = SchedulerExecutionFactory(scheduler=SchedulerFactory(rare=True))
    for _ in range(2):
        fail_row(row.pk, ValueError("attempt is no whole number"), clock.now())
    (facts,) = heard
    assert (facts["execution_id"], facts["error_class"]) == (row.pk, "UnusableRow")
    if connection.vendor == "sqlite":  # only SQLite stores a text in a column of times
        other = SchedulerExecutionFactory(scheduler=row.scheduler)
        with connection.cursor() as cursor:
            cursor.execute(
                "UPDATE scheduling_schedulerexecution SET scheduled_at = '2026-13-45 00:00:00' WHERE id = %s",
                [other.pk],
            )
        fail_row(other.pk, ValueError("scheduled_at"), clock.now())
        assert (heard[1]["execution_id"], heard[1]["type"]) == (other.pk, "")


def test_a_receiver_that_breaks_its_transaction_does_not_undo_the_failure(heard: list[dict[str, Any]]) -> None:
    def bad(**facts: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT * FROM no_such_table")

    execution_failed.connect(bad)
    try:
        schedule = SchedulerFactory(rare=True, max_retries=0)
        rows = [SchedulerExecutionFactory(running=True, scheduler=schedule) for _ in range(2)]
        past = clock.now().replace(year=2020)
        SchedulerExecution.objects.filter(pk__in=[row.pk for row in rows]).update(wake_at=past)
        assert recover_leases(get_broker("database://"), clock.now(), RunConfigs()) == 2
    finally:
        execution_failed.disconnect(bad)
    assert {facts["execution_id"] for facts in heard} == {row.pk for row in rows}
    assert set(SchedulerExecution.objects.values_list("state", "error_class")) == {("failed", "Crashed")}


def test_nothing_is_reported_if_the_transaction_is_rolled_back(heard: list[dict[str, Any]]) -> None:
    row = SchedulerExecutionFactory(scheduler=SchedulerFactory(rare=True))
    with transaction.atomic():
        fail_row(row.pk, ValueError("no"), clock.now())
        transaction.set_rollback(True)
    assert heard == []


def test_the_failure_of_an_event_names_its_topic_and_metadata(heard: list[dict[str, Any]]) -> None:
    event = EventFactory(topic="invoice.due", metadata={"customer": 42})
    other = SchedulerExecutionFactory()
    for row in (event.execution, other):
        fail_row(row.pk, ValueError("no paper"), clock.now())
    first, second = heard
    assert (first["scheduled_job_id"], first["topic"], first["metadata"]) == (event.pk, "invoice.due", {"customer": 42})
    assert first["last_error"].endswith("no paper")
    assert (second["scheduled_job_id"], second["topic"], second["metadata"]) == (other.pk, "", {})
