"""A consumer puts off the runs that only the code of another consumer can run."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.broker import Delivery
from scheduling.consumer.deferral import Deferral
from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.peers import Peers
from scheduling.consumer.running import Running
from scheduling.consumer.start import begin
from scheduling.core.lifecycle import State
from scheduling.core.outcome import Deferred, Failed
from scheduling.execution.publish import mark_published
from scheduling.execution.settle import settle_attempt
from scheduling.handlers.contract import contract
from scheduling.handlers.registry import find
from scheduling.handlers.run_config import RunConfigs
from scheduling.models import HandlerSet, Process, SchedulerExecution
from scheduling.models.execution import message_of
from scheduling.processes.identity import container_id
from tests.factories import HandlerSetFactory, ManualExecutionFactory, ProcessFactory, SchedulerFactory, WorkerFactory

pytestmark = pytest.mark.django_db

NEW = "tests.only_new_code_knows"
REFUSED = Failed("ParamsInvalid", "number: must be given", retryable=False, called=False)


def desk(*, embedded: bool = True) -> Deferral:
    return Deferral(RunConfigs(), embedded=embedded)


def queued(handler: str = NEW, **columns: Any) -> SchedulerExecution:
    WorkerFactory(name=handler)
    row: SchedulerExecution = ManualExecutionFactory(
        scheduler=SchedulerFactory(rare=True, handler=handler), **{"state": "queued", **columns}
    )
    row.refresh_from_db()
    return row


def new_consumer(known: dict[str, str] | None = None, **columns: Any) -> Process:
    found: Process = ProcessFactory(handler_set=HandlerSetFactory(known=known or {NEW: "new"}), **columns)
    return found


def put_off(row: SchedulerExecution, deferral: Deferral | None = None, *, later: float = 0) -> bool:
    """Whether the consumer puts the run off."""
    found = (deferral or desk()).defer([Delivery(message_of(row))], clock.now() + timedelta(seconds=later))
    row.refresh_from_db()
    return bool(found)


@pytest.mark.parametrize("embedded", [True, False])
@pytest.mark.parametrize("state", ["queued", "claimed", "retrying"])
def test_a_run_waits_for_the_consumer_that_knows_its_handler(embedded: bool, state: str) -> None:
    other, row = new_consumer(), queued(state=state)
    now = clock.now()
    delivery = Delivery(message_of(row))
    (arrival,) = begin([delivery], "desk", now, now, defer=lambda each: desk(embedded=embedded).defer(each, now))
    assert (arrival.started, arrival.deferred) == (False, True)
    row.refresh_from_db()
    assert (row.state, row.attempt, row.retry_base) == ("queued" if embedded else "claimed", 0, 0)
    assert row.wake_at is not None
    assert row.wake_at - now == timedelta(seconds=1)
    assert row.deferred_at == now
    assert row.reason.startswith(f"It waits for a consumer that knows the worker '{NEW}': {other.container_id}.")


def test_a_run_waits_as_long_as_the_other_consumer_lives() -> None:
    new_consumer()
    row = queued(deferred_at=clock.now() - timedelta(hours=3))
    assert put_off(row)
    assert row.deferred_at is not None
    assert row.deferred_at < clock.now() - timedelta(hours=2)


@pytest.mark.parametrize(
    "columns", [{"silent": True}, {"stopped": True}, {"producer": True}, {"info": {"queue": "standalone"}}], ids=str
)
def test_other_processes_do_not_prolong_the_wait(columns: dict[str, Any]) -> None:
    new_consumer(**columns)
    assert put_off(queued())
    assert not put_off(queued(deferred_at=clock.now() - timedelta(seconds=61)))


def test_the_minute_begins_when_the_last_consumer_that_knew_the_handler_has_ended() -> None:
    now = clock.now()
    other = new_consumer(stopped_at=now, heartbeat_at=now)
    row = queued(deferred_at=now - timedelta(hours=3))
    assert put_off(row)
    Process.objects.filter(pk=other.pk).update(heartbeat_at=now - timedelta(seconds=61))
    assert not put_off(row)


def test_a_retry_of_a_handler_that_no_consumer_knows_starts() -> None:
    """It has waited for its delay. Its failure uses up a retry."""
    row = queued(state="retrying", attempt=1)
    assert message_of(row).retry_count == 1
    assert not put_off(row)


def test_known_handlers_cost_no_query_but_the_one_that_reads_the_pauses_of_the_next_second() -> None:
    row, deferral = queued("tests.noop"), desk()
    deferral._configs.prepare([message_of(row)])
    with CaptureQueriesContext(connection) as captured:
        for _ in range(3):
            assert not deferral.defer([Delivery(message_of(row))], clock.now())
    assert [("pause" in query["sql"]) for query in captured] == [True]


def test_a_thousand_runs_do_not_ask_for_the_processes_each() -> None:
    new_consumer()
    rows, deferral = [queued() for _ in range(5)], desk()
    put_off(rows[0], deferral)
    with CaptureQueriesContext(connection) as captured:
        assert all(deferral.defer([Delivery(message_of(row))], clock.now()) for row in rows[1:])
    assert not [query for query in captured if "scheduling_process" in query["sql"]]


def test_a_copy_is_not_put_off() -> None:
    new_consumer()
    row = queued(attempt=1)
    copy = message_of(row)
    SchedulerExecution.objects.filter(pk=row.pk).update(attempt=2)
    assert not desk().defer([Delivery(copy)], clock.now())
    row.refresh_from_db()
    assert row.deferred_at is None


def test_a_late_confirm_does_not_move_a_run_that_is_put_off() -> None:
    """The message may arrive before the producer has recorded the confirm. Then no message is left."""
    new_consumer()
    row = queued(state="claimed", published_at=None)
    assert put_off(row, desk(embedded=False))
    assert mark_published([row.pk], clock.now()) == 0
    row.refresh_from_db()
    assert row.state == "claimed"


def test_a_process_row_that_cannot_be_read_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Peers, now: object) -> list[Any]:
        raise ValueError("month must be in 1..12")

    monkeypatch.setattr(Peers, "_read", fail)
    assert put_off(queued())


# --- params -------------------------------------------------------------------------------


def me(**columns: Any) -> Process:
    found: Process = ProcessFactory(
        container_id=container_id(),
        handler_set=HandlerSetFactory(known={"tests.typed": contract(find("worker", "tests.typed"))}),
        **columns,
    )
    return found


def refused(row: SchedulerExecution, deferral: Deferral, consumer: str = "") -> Failed | Deferred:
    """The outcome of an attempt whose params the consumer refuses."""
    now = clock.now()
    message = message_of(row)
    SchedulerExecution.objects.filter(pk=row.pk).update(state="running", attempt=message.attempt, wake_at=now)
    config = deferral._configs.get(message)
    run = Running(Delivery(message), config, OutputBuffer(1000, None), now, consumer or container_id(), outcome=REFUSED)
    outcome = deferral.outcome_of(run, now)
    result = settle_attempt(run.ended, outcome, config.policy, now, embedded=True)
    assert result.state is not None
    row.refresh_from_db()
    assert isinstance(outcome, Failed | Deferred)
    return outcome


def test_params_that_another_version_may_accept_wait_for_it() -> None:
    me()
    new_consumer({"tests.typed": "new"})
    row, deferral = queued("tests.typed"), desk()
    assert isinstance(refused(row, deferral), Deferred)
    assert (row.state, row.attempt, row.retry_base, row.error_class) == ("queued", 1, 1, "")
    assert row.reason.startswith("It waits for a consumer with another version of the worker 'tests.typed'")
    assert row.deferred_at is not None
    assert message_of(row).retry_count == 0
    attempt = row.attempts.get()
    assert (attempt.outcome, attempt.error_class) == ("interrupted", "Deferred")
    assert put_off(row, deferral), "the next message of this run costs no attempt"
    assert row.attempts.count() == 1


@pytest.mark.parametrize("columns", [{"silent": True}, {"stopped": True}], ids=str)
def test_params_that_no_other_version_can_accept_fail_at_once(columns: dict[str, Any]) -> None:
    me()
    new_consumer({"tests.typed": "new"}, **columns)
    new_consumer({"tests.typed": contract(find("worker", "tests.typed"))})
    new_consumer({"tests.noop": "new"})
    row = queued("tests.typed")
    assert refused(row, desk()) is REFUSED
    assert row.state == "failed"


def test_params_that_both_versions_refuse_fail() -> None:
    me()
    new = new_consumer({"tests.typed": "new"})
    row, deferral = queued("tests.typed"), desk()
    assert isinstance(refused(row, deferral), Deferred)
    row.attempts.update(consumer=new.container_id)  # as if the other consumer had refused them, too
    assert refused(row, deferral) is REFUSED
    assert (row.state, row.deferred_at) == ("failed", None)


@pytest.mark.parametrize("columns", [{"producer": True}, {"info": {"queue": "standalone"}}], ids=str)
def test_params_wait_a_minute_if_a_process_of_another_kind_or_queue_has_new_code(columns: dict[str, Any]) -> None:
    me()
    new_consumer({"tests.typed": "new"}, **columns)
    assert isinstance(refused(queued("tests.typed"), desk()), Deferred)
    late = queued("tests.typed", deferred_at=clock.now() - timedelta(seconds=61))
    assert refused(late, desk()) is REFUSED


def with_a_new_param(**columns: Any) -> SchedulerExecution:
    """A run that code of a newer version has asked for, which has one more param."""
    row = queued("tests.typed", **columns)
    SchedulerExecution.objects.filter(pk=row.pk).update(params={"since_days": 2, "only_new_code_knows": 1})
    row.refresh_from_db()
    return row


def test_a_param_that_is_unknown_here_waits_for_another_version_before_its_start() -> None:
    me()
    new_consumer({"tests.typed": "new"})
    row = with_a_new_param()
    assert put_off(row)
    assert row.reason.startswith("It waits for a consumer with another version of the worker 'tests.typed'")
    assert (row.attempt, row.attempts.count()) == (0, 0)
    assert not put_off(queued("tests.typed", params={"since_days": 2}))


def test_a_param_that_no_version_knows_waits_for_a_minute_at_most() -> None:
    """Then the run starts without it. Two versions that send the run to each other would never run it."""
    me()
    new_consumer({"tests.typed": "new"})
    assert not put_off(with_a_new_param(deferred_at=clock.now() - timedelta(seconds=61)))
    Process.objects.exclude(container_id=container_id()).delete()
    assert not put_off(with_a_new_param())


def test_an_error_of_a_handler_that_was_called_costs_no_query() -> None:
    new_consumer({"tests.typed": "new"})
    row, deferral = queued("tests.typed"), desk()
    run = Running(
        Delivery(message_of(row)), deferral._configs.get(message_of(row)), OutputBuffer(1000, None), clock.now(), "x",
        outcome=Failed("ParamsInvalid", "raised by the handler itself", retryable=False),
    )  # fmt: skip
    with CaptureQueriesContext(connection) as captured:
        assert deferral.outcome_of(run, clock.now()) is run.outcome
    assert len(captured) == 0


def test_a_run_that_is_put_off_can_be_cancelled() -> None:
    from scheduling.execution.cancel import cancel

    new_consumer()
    row = queued()
    put_off(row)
    assert cancel(row.pk, "ann") == State.CANCELLED.value
    assert HandlerSet.objects.count() == 1
