"""A run that code asks for is one statement, which inserts nothing if what this process remembers has changed."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from django.db import connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.api import Asked, run, run_many
from scheduling.core.deployment import LOST_TAIL_SECONDS, Held
from scheduling.execution.direct_insert import is_supported
from scheduling.handlers.params import ParamsInvalid
from scheduling.models import Deployment, SchedulerExecution, Worker
from scheduling.processes.guard import guard

pytestmark = pytest.mark.django_db

NAMES = ("tests.mark", "tests.noop")


@pytest.fixture(autouse=True)
def remembered() -> None:
    """Let the process know what it needs for one statement."""
    for name in NAMES:
        run(name)
    if not is_supported():
        pytest.skip("this database takes several statements for each run")
    SchedulerExecution.objects.all().delete()


def statements(handler: str = "tests.mark", **arguments: Any) -> list[str]:
    """The statements of one run."""
    with CaptureQueriesContext(connection) as found:
        run(handler, **arguments)
    return [query["sql"] for query in found]


def test_a_run_is_one_statement() -> None:
    assert len(statements(params={"seconds": 2}, delay=60, by="shop", headers={"trace": "a"})) == 1
    assert len(statements("tests.noop", at=clock.now())) == 1
    assert len(statements()) == 1
    assert SchedulerExecution.objects.count() == 3


def test_it_stores_what_the_long_way_stores() -> None:
    at = clock.now()
    for arguments in (
        {"params": {"seconds": 0.5}, "by": "Ä %s \\ \" ' 😀"},
        {"params": {}, "headers": {"trace": "%(x)s \\u0041", "é": ""}},
        {"params": {"seconds": 1}, "at": at},
    ):
        one = Asked("tests.mark", **arguments)  # type: ignore[arg-type]
        alone, among = run("tests.mark", **arguments), run_many([one, one])[0]  # type: ignore[arg-type]
        stored, other = (SchedulerExecution.objects.get(pk=found.id) for found in (alone, among))
        own = {"id", "execution_key", "executed_at", "scheduled_at", "wake_at", "published_at"}
        for field in SchedulerExecution._meta.concrete_fields:
            if field.attname not in own:
                assert getattr(stored, field.attname) == getattr(other, field.attname), field
        assert stored.scheduled_at == stored.executed_at == stored.wake_at == stored.published_at
        assert stored.execution_key != other.execution_key


@pytest.mark.parametrize("params", [{"seconds": -1}, {"seconds": "many"}, {"seconds": None}])
def test_the_params_of_the_worker_may_have_changed(params: dict[str, Any]) -> None:
    Worker.objects.filter(name="tests.mark").update(params=params)
    with pytest.raises(ParamsInvalid):
        run("tests.mark")
    assert not SchedulerExecution.objects.exists()
    Worker.objects.filter(name="tests.mark").update(params={"seconds": 1})
    run("tests.mark")
    assert len(statements()) == 1


def test_the_params_of_the_worker_may_have_been_mended() -> None:
    Worker.objects.filter(name="tests.mark").update(params={"seconds": -1})
    with pytest.raises(ParamsInvalid):
        run("tests.mark")
    Worker.objects.filter(name="tests.mark").update(params={})
    run("tests.mark")
    assert SchedulerExecution.objects.count() == 1


def test_a_number_of_another_kind_is_another_value() -> None:
    Worker.objects.filter(name="tests.mark").update(params={"seconds": 1})
    run("tests.mark")
    Worker.objects.filter(name="tests.mark").update(params={"seconds": 1.0})
    assert len(statements()) > 1


def test_the_row_of_the_worker_may_be_another() -> None:
    before = Worker.objects.get(name="tests.mark").pk
    Worker.objects.filter(name="tests.mark").delete()
    after = SchedulerExecution.objects.get(pk=run("tests.mark").id).target_id
    assert after == Worker.objects.get(name="tests.mark").pk != before


@pytest.mark.parametrize(
    "columns",
    [
        {"name": "another deployment", "fingerprints": "f" * 16},
        {"held_at": clock.now(), "held_reason": "The database was restored."},
        {"worked": F("worked") - LOST_TAIL_SECONDS - 10},
        {"worked": 10**15},
    ],
)
def test_a_database_that_must_hold_gets_no_run(columns: dict[str, Any]) -> None:
    Deployment.objects.update(worked=10_000)
    guard.forget()
    run("tests.mark")
    assert len(statements()) == 1
    Deployment.objects.update(**columns)
    before = SchedulerExecution.objects.count()
    with pytest.raises(Held):
        run("tests.mark")
    assert SchedulerExecution.objects.count() == before


def test_what_the_statement_sees_is_remembered() -> None:
    """The process looks again if the database has run back since any of its runs."""
    Deployment.objects.update(worked=F("worked") + 50)
    assert len(statements()) == 1
    Deployment.objects.update(worked=F("worked") - 25)
    assert len(statements()) > 1


def test_a_deleted_row_of_the_deployment_holds() -> None:
    run("tests.mark")
    Deployment.objects.all().delete()
    with pytest.raises(Held):
        run("tests.mark")


def test_a_process_that_knows_nothing_looks_first() -> None:
    guard.forget()
    assert len(statements()) > 1
    assert len(statements()) == 1


def test_an_error_in_the_callers_transaction_ends_it() -> None:
    """As with `Model.save`: the caller cannot commit half of its work."""

    def half() -> None:
        with transaction.atomic():
            Worker.objects.filter(name="tests.noop").update(title="half")
            with suppress(UnicodeEncodeError):
                run("tests.mark", by="\ud800")
            Worker.objects.count()

    with pytest.raises(transaction.TransactionManagementError):
        half()
    assert not Worker.objects.filter(title="half").exists()
