"""Schedules are made and changed in the name of an actor, with the rules of the admin's form."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.handlers.secret_params import MASK
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.operations import executions, schedule_state, schedules
from scheduling.operations.actor import Actor
from scheduling.operations.shaping import schedule_shape
from tests.factories import GroupFactory, SchedulerExecutionFactory, SchedulerFactory, UserFactory, WorkerFactory
from tests.operations.refusals import refused

pytestmark = pytest.mark.django_db
DAILY = "0 8 * * *"


@pytest.fixture
def actor(db: None) -> Actor:
    return Actor(UserFactory(superuser=True), "command")


def test_the_retry_values_must_fit_those_of_the_code(actor: Actor) -> None:
    WorkerFactory(name="tests.keep")  # its code has delays far below an hour
    values = {"schedule": DAILY, "worker": "tests.keep", "params": {"token": "a"}}
    found = refused(schedules.make, actor, {**values, "retry_max_delay_ms": 1_000, "retry_delay_ms": 2_000})
    assert (found.code, found.problems[0].field) == ("SCHEDULE_RETRY_POLICY_INVALID", "retry_max_delay_ms")
    # Alone, the longest delay is possible; together with the first delay of the code, it is not.
    row = schedules.make(actor, {"schedule": DAILY, "worker": WorkerFactory(name="tests.patient").name})
    found = refused(schedules.change, actor, row.pk, {"retry_max_delay_ms": 1_000})
    assert found.code == "SCHEDULE_RETRY_POLICY_INVALID"


def test_a_secret_that_comes_back_masked_keeps_its_value_and_stays_with_its_target(actor: Actor) -> None:
    for name in ("tests.keep", "tests.tell_secret"):
        WorkerFactory(name=name)
    values = {"schedule": DAILY, "worker": "tests.keep", "params": {"token": "hunter2", "days": 2}}
    row = schedules.make(actor, values)
    shown = schedule_shape(actor, row.pk).params
    assert shown == {"token": MASK, "days": 2}
    schedules.change(actor, row.pk, {"params": {**shown, "days": 3}})
    assert Scheduler.objects.get(pk=row.pk).params == {"token": "hunter2", "days": 3}
    found = refused(schedules.change, actor, row.pk, {"worker": "tests.tell_secret", "params": shown})
    assert [problem.code for problem in found.problems] == ["secret"]
    found = refused(schedules.change, actor, row.pk, {"worker": "tests.tell_secret"})
    assert [problem.code for problem in found.problems] == ["secret"]
    assert Scheduler.objects.get(pk=row.pk).params == {"token": "hunter2", "days": 3}
    # The same for a run of it, and for a run of an execution whose schedule has another target now.
    assert schedule_state.run(actor, row.pk, {"token": MASK, "days": 5}).params == {"token": "hunter2", "days": 5}
    old = SchedulerExecutionFactory(scheduler=row, params={"token": "hunter2"}, succeeded=True)
    Scheduler.objects.filter(pk=row.pk).update(worker=WorkerFactory(name="tests.tell_secret"), params={})
    assert refused(executions.rerun, actor, old.pk, {"token": MASK}).problems[0].code == "secret"
    assert refused(executions.rerun, actor, old.pk).code == "CONFLICT"


def test_a_schedule_is_found_by_id_name_and_the_only_beginning(actor: Actor) -> None:
    first = SchedulerFactory(name="nightly-backup", description="Backup of the shop")
    second = SchedulerFactory(name="nightly-report", description="Report")
    for text in (str(first.pk), "nightly-backup", "nightly-b", "Backup of the shop", "backup"):
        assert schedules.find(actor, text) == first
    found = refused(schedules.find, actor, "nightly")
    assert (found.code, found.extra["ids"]) == ("AMBIGUOUS", [first.pk, second.pk])
    for text in ("", "none", "9" * 30, "\x00", "٣", "%"):
        assert refused(schedules.find, actor, text).code == "NOT_FOUND"
    hidden = SchedulerFactory(name="hidden", group=GroupFactory())
    limited = Actor(UserFactory(permissions=["scheduling.view_scheduler"]))
    assert refused(schedules.find, limited, "hidden").code == "NOT_FOUND"
    assert refused(schedules.find, limited, str(hidden.pk)).code == "NOT_FOUND"


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"worker": "tests.noop", "report_id": 1}, "worker"),
        ({"worker": "nothing like it"}, "worker"),
        ({"worker": None}, "worker"),
        ({"schedule": ""}, "schedule"),
        ({"date_time": "2030-01-01T00:00"}, "schedule"),
        ({"schedule": "", "date_time": "yesterday"}, "date_time"),
        ({"schedule": "", "date_time": "2020-01-01T00:00Z"}, "date_time"),
        ({"schedule": "", "date_time": "9999-12-31T23:59:59Z", "timezone": "Pacific/Kiritimati"}, "date_time"),
        ({"schedule": "", "date_time": "9999-12-31T23:59:59-14:00"}, "date_time"),
        ({"schedule": "", "date_time": "0001-01-01T00:00:00+14:00", "status": False}, "date_time"),
        ({"schedule": "", "date_time": "2030-01-01T00:00", "timezone": "Mars"}, "date_time"),
        ({"timezone": "Mars/Base"}, "timezone"),
        ({"name": "Not A Name"}, "name"),
        ({"name": "taken"}, "name"),
        ({"name": "@worker:tests.noop"}, "name"),
        ({"user": "no such user"}, "user"),
        ({"group": "no such group"}, "group"),
        ({"params": {"a": "\x00"}}, "params"),
        ({"description": "\ud800"}, "description"),
        ({"queue": "no queue!"}, "queue"),
        ({"keep_count": 10**6}, "keep_count"),
    ],
)
def test_a_wrong_value_is_refused_with_its_field(actor: Actor, values: dict[str, Any], field: str) -> None:
    SchedulerFactory(name="taken")
    WorkerFactory(name="tests.noop")
    found = refused(schedules.make, actor, {"schedule": DAILY, "worker": "tests.noop", **values})
    assert field in {problem.field for problem in found.problems}
    assert Scheduler.objects.count() == 1


def test_a_local_date_is_read_in_the_zone_of_the_schedule(actor: Actor) -> None:
    WorkerFactory(name="tests.noop")
    row = schedules.make(actor, {"worker": "tests.noop", "date_time": "2030-07-01T12:00", "timezone": "Europe/Madrid"})
    assert row.date_time is not None
    assert row.date_time.isoformat() == "2030-07-01T10:00:00+00:00"


def test_a_run_and_its_entry_of_the_history_are_stored_together(actor: Actor, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_args: Any) -> None:
        raise RuntimeError("no history")

    row = SchedulerFactory()
    monkeypatch.setattr("scheduling.operations.schedule_state.record", fails)
    with pytest.raises(RuntimeError):
        schedule_state.run(actor, row.pk)
    assert not SchedulerExecution.objects.exists()


def test_the_reason_of_a_pause_is_one_line(actor: Actor) -> None:
    row = SchedulerFactory()
    schedules.change(actor, row.pk, {"status": False, "pause_reason": "a\n b\x0bc"})
    assert Scheduler.objects.get(pk=row.pk).pause_reason == "a b c"
