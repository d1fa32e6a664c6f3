"""The tests check `message_of`, which makes the message of an execution, and the changes of an execution's state."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.utils import timezone as clock

from scheduling.broker.database import DatabaseBroker
from scheduling.core.lifecycle import WAITING, State
from scheduling.execution.transitions import Ended, Entry, Next, settle
from scheduling.models import SchedulerExecution
from scheduling.models.execution import MESSAGE_COLUMNS, message_of
from tests.factories import ManualExecutionFactory

pytestmark = pytest.mark.django_db


def test_a_row_a_tuple_and_the_database_transport_give_the_same_message() -> None:
    row = ManualExecutionFactory(attempt=4, retry_base=1, params={"a": 2})
    message = message_of(row)
    assert (message.execution_id, message.attempt, message.retry_count, message.params) == (row.pk, 5, 3, {"a": 2})
    assert message_of(SchedulerExecution.objects.values_list(*MESSAGE_COLUMNS, named=True).get(pk=row.pk)) == message
    with transaction.atomic():
        assert [delivery.message for delivery in DatabaseBroker().take(["main"], 1, clock.now())] == [message]


def test_move_changes_only_rows_in_the_named_states_and_refuses_forbidden_moves() -> None:
    waiting, over = ManualExecutionFactory.bulk(2)
    SchedulerExecution.objects.filter(pk=over.pk).update(state=State.SUCCEEDED.value)
    rows = SchedulerExecution.objects.filter(pk__in=[waiting.pk, over.pk])
    with pytest.raises(ValueError, match="never moves from queued to discarded"):
        rows.move([State.QUEUED], State.DISCARDED, reason="no")
    assert rows.move(WAITING, State.CANCELLED, reason="yes") == 1
    assert [*rows.order_by("pk").values_list("state", "reason")] == [("cancelled", "yes"), ("succeeded", "")]


def test_settle_refuses_a_state_that_no_run_reaches() -> None:
    row = ManualExecutionFactory()
    ended = Ended(row.pk, 1, clock.now(), "consumer")
    with pytest.raises(ValueError, match="never moves from running to discarded"):
        settle(ended, Next(State.DISCARDED), Entry("failed"), clock.now())
