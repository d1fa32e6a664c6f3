"""Which queue and priority a run gets: the run's, the schedule's, or the handler's."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.utils import timezone as clock

from scheduling import api
from scheduling.broker.database import DatabaseBroker
from scheduling.execution.claim import claim_due
from scheduling.execution.run_now import run_now
from scheduling.execution.run_once import run_once
from scheduling.handlers import registry
from scheduling.handlers.registry import Handler, RegistryError, register, worker
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.plan import PlanState
from scheduling.testing import drain
from tests.core.queue_names import HOSTILE
from tests.factories import SchedulerFactory, WorkerFactory

pytestmark = pytest.mark.django_db

BROKER = DatabaseBroker()


@pytest.fixture(autouse=True)
def _urgent_mail(monkeypatch: pytest.MonkeyPatch) -> None:
    """Register a worker that names a queue and a priority, for one test."""
    monkeypatch.setattr(registry, "_handlers", dict(registry._handlers))
    worker("tests.urgent_mail", queue="mail", priority="high")(lambda params, run: None)


def queue_of(pk: int) -> str:
    return SchedulerExecution.objects.get(pk=pk).queue


def due(**columns: Any) -> Scheduler:
    row = SchedulerFactory(**columns)
    Scheduler.objects.filter(pk=row.pk).update(next_run_at=clock.now())
    return row


@pytest.mark.parametrize(
    ("handler", "columns", "work_queue"),
    [
        ("tests.noop", {}, "main"),
        ("tests.noop", {"queue": "reports"}, "reports"),
        ("tests.noop", {"priority": "low"}, "main.low"),
        ("tests.urgent_mail", {}, "mail.high"),
        ("tests.urgent_mail", {"queue": "reports"}, "reports.high"),
        ("tests.urgent_mail", {"queue": "main", "priority": "normal"}, "main"),
        ("tests.urgent_mail", {"stay_alive": True}, "standalone"),
        ("tests.urgent_mail", {"queue": "immediate"}, "immediate"),
    ],
)
def test_the_schedules_own_values_go_before_those_of_the_handler(
    handler: str, columns: dict[str, Any], work_queue: str
) -> None:
    row = due(worker=WorkerFactory(name=handler), **columns)
    (claimed,) = claim_due(clock.now(), embedded=True).claimed
    assert queue_of(claimed.pk) == work_queue
    if not row.stay_alive:
        assert queue_of(run_now(row, BROKER).pk) == work_queue


@pytest.mark.parametrize(
    ("options", "work_queue"),
    [
        ({}, "mail.high"),
        ({"queue": "reports"}, "reports.high"),
        ({"priority": "low"}, "mail.low"),
        ({"queue": "main", "priority": "normal"}, "main"),
    ],
)
def test_the_calls_values_go_before_those_of_the_handler(options: dict[str, Any], work_queue: str) -> None:
    assert queue_of(api.run("tests.urgent_mail", **options).id) == work_queue
    assert queue_of(api.run_many([api.Asked("tests.urgent_mail", **options)])[0].id) == work_queue


def test_a_run_by_hand_has_the_queue_of_its_handler() -> None:
    made, _is_new = run_once(WorkerFactory(name="tests.urgent_mail"), BROKER, "ann", {}, uuid.uuid4())
    assert made.queue == "mail.high"


def test_a_later_call_moves_the_run_that_waits_to_its_queue() -> None:
    first = api.run("tests.noop", key="k", debounce=600)
    again = api.run("tests.noop", key="k", debounce=600, queue="reports", priority="low")
    assert (again.id, queue_of(first.id)) == (first.id, "reports.low")


@pytest.mark.parametrize("name", [name for name in HOSTILE if name], ids=ascii)
def test_no_run_handler_or_schedule_can_name_this_queue(name: Any) -> None:
    with pytest.raises(ValueError, match="queue"):
        api.run("tests.noop", queue=name)
    with pytest.raises(RegistryError, match="queue"):
        register(Handler("worker", "tests.bad_queue", print, queue=name))
    with pytest.raises(ValidationError) as found:
        SchedulerFactory(queue=name)
    assert list(found.value.message_dict) == ["queue"]
    assert not SchedulerExecution.objects.exists()


@pytest.mark.parametrize("name", ["urgent", "High", "\ud800", 5, "low\x00"], ids=ascii)
def test_no_run_handler_or_schedule_can_have_this_priority(name: Any) -> None:
    with pytest.raises(ValueError, match="priority"):
        api.run("tests.noop", priority=name)
    with pytest.raises(RegistryError, match="priority"):
        register(Handler("worker", "tests.bad_queue", print, priority=name))
    with pytest.raises(ValidationError) as found:
        SchedulerFactory(priority=name)
    assert list(found.value.message_dict) == ["priority"]


def test_the_immediate_queue_has_no_priorities() -> None:
    with pytest.raises(ValidationError, match="no priorities") as refused:
        SchedulerFactory.build(worker=WorkerFactory(), queue="immediate", priority="high").full_clean()
    assert set(refused.value.message_dict) == {"priority"}
    with pytest.raises(ValueError, match="no priorities"):
        api.run("tests.noop", queue="immediate", priority="low")
    with pytest.raises(RegistryError, match="no priorities"):
        worker("tests.at_once", queue="immediate", priority="low")(lambda params, run: None)


@pytest.mark.parametrize("columns", [{"queue": "reports"}, {"priority": "high"}])
def test_a_service_has_a_queue_of_its_own(columns: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="A service has a queue of its own"):
        SchedulerFactory(stay_alive=True, **columns)


@pytest.mark.parametrize("columns", [{"queue": "A b"}, {"queue": "standalone"}, {"priority": "urgent"}])
def test_a_schedule_with_a_queue_from_plain_sql_is_set_aside_alone(columns: dict[str, str]) -> None:
    bad, good = due(), due()
    Scheduler.objects.filter(pk=bad.pk).update(**columns)
    done = claim_due(clock.now(), embedded=True)
    assert [row.scheduler_id for row in done.claimed] == [good.pk]
    bad.refresh_from_db()
    assert bad.plan_state == PlanState.SET_ASIDE
    assert "queue" in bad.plan_error or "priority" in bad.plan_error


def test_a_named_schedule_has_a_queue_and_a_priority() -> None:
    made = api.schedule("nightly", "0 3 * * *", "tests.noop", queue="reports", priority="low")
    row = Scheduler.objects.get(pk=made.id)
    assert (row.queue, row.priority) == ("reports", "low")
    with pytest.raises(ValueError, match="queue"):
        api.schedule("nightly", "0 3 * * *", "tests.noop", queue="cron_scheduler_failed")


def test_drain_runs_the_runs_of_all_queues_the_higher_priorities_first() -> None:
    made = {name: api.run("tests.noop", queue="mail", priority=name).id for name in ("low", "normal", "high")}
    reports = api.run("tests.noop", queue="reports").id
    order = [outcome.execution_id for outcome in drain()]
    assert sorted(order) == sorted([*made.values(), reports])
    assert [pk for pk in order if pk != reports] == [made["high"], made["normal"], made["low"]]
