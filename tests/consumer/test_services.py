"""A consumer knows which of its runs are services, and ends them differently."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.broker import Delivery
from scheduling.broker.database import DatabaseBroker
from scheduling.consumer.acknowledge import Answers
from scheduling.consumer.due_retries import Rescue
from scheduling.consumer.output import OutputBuffer
from scheduling.consumer.row_writer import RowWriter
from scheduling.consumer.running import Running
from scheduling.consumer.shutdown import Drain
from scheduling.consumer.slots import TERM_GRACE_SECONDS
from scheduling.core.messages import TaskMessage
from scheduling.core.outcome import Interrupted, Outcome, Succeeded
from scheduling.execution import transitions
from scheduling.handlers.run_config import RunConfig, RunConfigs
from scheduling.inbox.actions import republish
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.execution import message_of
from scheduling.processes.identity import container_id
from scheduling.producer.lost_leases import recover_leases
from tests.execution.services import LEASE, first_run, service
from tests.factories import ManualExecutionFactory, ReportFactory, SchedulerFactory
from tests.support import NOON, Commands

pytestmark = pytest.mark.django_db


def test_an_execution_of_the_main_queue_never_becomes_a_service() -> None:
    """No pause would end it, and it would hold a slot of an ordinary consumer for ever."""
    row = service(stay_alive=False, retry_delay_ms=5_000, max_retries=0)
    run, now = first_run(row), clock.now()
    assert transitions.start(run.pk, 1, run.execution_key, "one", now - 2 * LEASE, now - LEASE)
    Scheduler.objects.filter(pk=row.pk).update(stay_alive=True)
    message = message_of(run)
    assert [RunConfigs(queues=[queue]).get(message).service for queue in ("main", "standalone")] == [False, True]
    assert recover_leases(DatabaseBroker(), now, RunConfigs()) == 1
    run.refresh_from_db()
    assert (run.state, run.queue) == ("failed", "main")
    assert republish([run.pk], DatabaseBroker(), "ann") == [run.pk]
    run.refresh_from_db()
    assert (run.state, run.queue) == ("queued", "standalone")


def test_only_the_worker_of_a_service_is_a_service_and_the_sites_time_limit_is_not_for_it(settings: Any) -> None:
    settings.CRON_TIME_LIMIT_SECONDS = 3600
    configs = RunConfigs()
    run = first_run(service())
    usual = first_run(SchedulerFactory(schedule="* * * * *", params={}))
    limited = first_run(service(time_limit=7))
    report = SchedulerExecution.objects.create(
        scheduler=service(), execution_key="message-1", scheduled_at=NOON, trigger="message", type="report",
        target_id=ReportFactory().pk, executed_at=NOON, container_id="x", state="queued",
    )  # fmt: skip
    found = [configs.get(message_of(row)) for row in (run, usual, limited, report)]
    assert [config.service for config in found] == [True, False, True, False]
    assert [config.time_limit for config in found] == [0, 3600, 7, 3600]


def test_a_run_ends_if_its_schedule_is_a_service_no_more() -> None:
    row, broker = service(max_retries=0), DatabaseBroker()
    first_run(row)
    configs, queue = RunConfigs(monotonic=count(step=3).__next__, queues=["standalone"]), "standalone"
    writer = RowWriter(broker, [queue], 15, configs, Answers(broker), Rescue(broker, [queue]))
    _settled, _deliveries, (arrival,) = writer.write([], 1, clock.now())
    config = configs.get(arrival.delivery.message)
    run = Running(arrival.delivery, config, OutputBuffer(1000, None), clock.now(), container_id())
    assert (config.service, run.task()["run"]["is_last_attempt"]) == (True, False)
    Scheduler.objects.filter(pk=row.pk).update(stay_alive=False)
    run.outcome = Succeeded()
    ((_run, result),), _deliveries, _arrivals = writer.write([run], 0, clock.now())
    assert result.state == "succeeded"


@pytest.mark.parametrize(("is_service", "name"), [(True, "interrupted"), (False, "succeeded")])
def test_a_service_that_returns_when_it_is_asked_to_end_is_interrupted(is_service: bool, name: str) -> None:
    delivery = Delivery(TaskMessage(type="worker", id=1, execution_id=1))
    config = RunConfig("tests.serve", service=is_service)
    run = Running(delivery, config, OutputBuffer(1000, None), clock.now(), "one")
    run.verdict, run.answer = Interrupted(), {"outcome": "succeeded"}
    assert run.judge().name == name


class Recorder:
    """Slots that only record which runs are ended, with which grace time."""

    def __init__(self, *runs: Running) -> None:
        self.running = list(runs)
        self.ended: list[tuple[str, float]] = []

    def end(self, run: Running, _verdict: Outcome, _now: float, grace: float) -> None:
        self.ended.append((run.config.handler, grace))


def test_a_drain_ends_services_at_once_and_other_runs_after_the_grace_time() -> None:
    delivery = Delivery(TaskMessage(type="worker", id=1, execution_id=1))
    configs = [RunConfig("service", service=True), RunConfig("usual")]
    runs = [Running(delivery, config, OutputBuffer(1000, None), clock.now(), "one") for config in configs]
    slots, stop = Recorder(*runs), SimpleNamespace(asked=0, patient=False)
    drain = Drain(stop, slots, 30.0)  # type: ignore[arg-type]
    drain.apply(0.0)
    assert (slots.ended, drain.next_clock()) == ([], None)
    stop.asked = 1
    for monotonic in (1.0, 2.0, 30.9):
        drain.apply(monotonic)
        assert (slots.ended, drain.next_clock()) == ([("service", 30.0)], 31.0)
    for monotonic in (31.0, 32.0):
        drain.apply(monotonic)
        assert slots.ended == [("service", 30.0), ("usual", TERM_GRACE_SECONDS)]
    stop.asked = 2
    for monotonic in (33.0, 34.0):
        drain.apply(monotonic)
        assert slots.ended[2:] == [("service", 0.0), ("usual", 0.0)]


def test_a_patient_drain_has_no_limit_until_a_stop_signal_comes() -> None:
    delivery = Delivery(TaskMessage(type="worker", id=1, execution_id=1))
    runs = [Running(delivery, RunConfig("usual"), OutputBuffer(1000, None), clock.now(), "one")]
    slots, stop = Recorder(*runs), SimpleNamespace(asked=1, patient=True)
    drain = Drain(stop, slots, 30.0)  # type: ignore[arg-type]
    for monotonic in (0.0, 1e9):
        drain.apply(monotonic)
        assert (slots.ended, drain.next_clock()) == ([], None)
    stop.patient = False
    drain.apply(1e9 + 1)
    assert (slots.ended, drain.next_clock()) == ([], 1e9 + 31)
    drain.apply(1e9 + 31)
    assert slots.ended == [("usual", TERM_GRACE_SECONDS)]


@pytest.mark.processes
@pytest.mark.django_db(transaction=True)
def test_an_ordinary_consumer_runs_no_services(commands: Commands) -> None:
    row = SchedulerFactory(rare=True, handler="tests.noop", stay_alive=True)
    run = ManualExecutionFactory(scheduler=row, queue="main")
    worker = commands.start("run_worker", "--max-runs", "1")
    assert worker.wait(90) == 0, commands.log(worker)
    run.refresh_from_db()
    assert run.state == "succeeded"
