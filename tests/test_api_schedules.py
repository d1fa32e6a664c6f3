"""Schedules that code makes by name, and the schedules of `@worker(schedule=)`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import pytest
from django.contrib.auth.models import Group
from django.db import connections, transaction
from django.test import Client
from pydantic import BaseModel

from scheduling.api import schedule, unschedule
from scheduling.handlers import UnknownHandler, registry, worker
from scheduling.handlers.params import ParamsInvalid
from scheduling.handlers.registry import RegistryError
from scheduling.handlers.targets import sync_targets
from scheduling.models import Scheduler, SchedulerExecution, Worker
from tests.factories import UserFactory
from tests.support import at_once

pytestmark = pytest.mark.django_db

T = TypeVar("T")


def made(name: str) -> Scheduler:
    return Scheduler.objects.get(name=name)


def test_a_name_makes_one_schedule() -> None:
    first = schedule("nightly", "0 3 * * *", "tests.mark", {"seconds": 2}, timezone="Europe/Madrid")
    assert first.is_new
    row = made("nightly")
    assert (row.pk, row.schedule, row.timezone, row.params) == (first.id, "0 3 * * *", "Europe/Madrid", {"seconds": 2})
    assert row.target == Worker.objects.get(name="tests.mark")
    assert row.next_run_at is not None
    again = schedule("nightly", "0 3 * * *", "tests.mark", {"seconds": 2}, timezone="Europe/Madrid")
    assert (again.id, again.is_new, again.changed) == (first.id, False, ())


def test_a_later_call_changes_what_it_says_and_nothing_else() -> None:
    schedule("nightly", "0 3 * * *", "tests.mark", {"seconds": 2})
    Scheduler.objects.filter(name="nightly").update(time_limit=60, description="by an operator")
    before = made("nightly")
    found = schedule("nightly", "0 4 * * *", "tests.noop", {}, max_retries=1)
    assert found.changed == ("max_retries", "params", "schedule", "worker")
    row = made("nightly")
    assert (row.schedule, row.params, row.max_retries, str(row.target)) == ("0 4 * * *", {}, 1, "tests.noop")
    assert (row.time_limit, row.description) == (60, "by an operator")
    assert row.next_run_at is not None
    assert row.next_run_at != before.next_run_at


def test_a_paused_schedule_stays_paused() -> None:
    schedule("nightly", "0 3 * * *", "tests.noop")
    row = made("nightly")
    row.status = False
    row.save()
    schedule("nightly", "0 4 * * *", "tests.noop")
    row.refresh_from_db()
    assert (row.status, row.schedule, row.next_run_at) == (False, "0 4 * * *", None)


def test_what_operators_have_made_of_it_is_set_again() -> None:
    """An operator gave it another time and the target of another kind."""
    schedule("nightly", "0 3 * * *", "tests.noop")
    row = made("nightly")
    row.schedule, row.params = "0 9 * * *", {"seconds": 1}
    row.worker = Worker.objects.get(name="tests.mark")
    row.save()
    assert schedule("nightly", "0 3 * * *", "tests.noop").changed == ("params", "schedule", "worker")


def test_the_owner_is_a_row() -> None:
    group, user = Group.objects.create(name="Finance"), UserFactory()
    schedule("nightly", "0 3 * * *", "tests.noop", group=group, user=user)
    assert (made("nightly").group, made("nightly").user) == (group, user)
    assert schedule("nightly", "0 3 * * *", "tests.noop", group=None).changed == ("group",)


def test_it_is_part_of_the_transaction() -> None:
    class RolledBack(Exception):
        pass

    def rolled_back() -> None:
        with transaction.atomic():
            schedule("nightly", "0 3 * * *", "tests.noop")
            raise RolledBack

    with pytest.raises(RolledBack):
        rolled_back()
    assert not Scheduler.objects.exists()


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"handler": "tests.nowhere"}, UnknownHandler, "tests.nowhere"),
        ({"cron": "61 * * * *"}, ValueError, "outside 0-59"),
        ({"cron": "0 0 31 2 *"}, ValueError, "schedule:"),
        ({"cron": ""}, ValueError, "schedule"),
        ({"cron": None}, ValueError, "schedule"),
        ({"handler": "tests.noop", "params": {"wrong": 1}}, ParamsInvalid, "there is no such parameter"),
        ({"params": [1]}, ParamsInvalid, "JSON object"),
        ({"params": {"seconds": object()}}, ValueError, "not JSON"),
        ({"timezone": "Nowhere/Atlantis"}, ValueError, "timezone"),
        ({"description": "x" * 300}, ValueError, "description"),
        ({"overlap": "queue"}, ValueError, "overlap"),
        ({"max_retries": -1}, ValueError, "max_retries"),
        ({"time_limit": "long"}, ValueError, "time_limit"),
        ({"language": "xx"}, ValueError, "language"),
        ({"group": "Finance"}, ValueError, "group"),
        ({"status": False}, TypeError, "status"),
        ({"name": ""}, ValueError, "lower-case"),
        ({"name": "Nightly"}, ValueError, "lower-case"),
        ({"name": "x" * 101}, ValueError, "lower-case"),
        ({"name": "x" * 10_000}, ValueError, "lower-case"),
        ({"name": "@worker:tests.noop"}, ValueError, "lower-case"),
        ({"name": 7}, ValueError, "lower-case"),
        ({"name": None}, ValueError, "lower-case"),
    ],
)
def test_what_cannot_be_stored_is_an_error_at_the_call(
    arguments: dict[str, Any], error: type[Exception], words: str
) -> None:
    known: dict[str, Any] = {"name": "nightly", "cron": "0 3 * * *", "handler": "tests.mark"}
    with pytest.raises(error, match=words):
        schedule(**{**known, **arguments})
    assert not Scheduler.objects.exists()
    schedule("nightly", "0 3 * * *", "tests.mark")  # neither does it change the schedule
    if "name" not in arguments:
        with pytest.raises(error, match=words):
            schedule(**{**known, **arguments})
        assert made("nightly").schedule == "0 3 * * *"


def test_unschedule() -> None:
    schedule("nightly", "0 3 * * *", "tests.noop")
    assert unschedule("nightly")
    assert not unschedule("nightly")
    assert not unschedule("\x00")
    assert not Scheduler.objects.exists()


def behind(first: Callable[[], T], second: Callable[[], T]) -> tuple[T, T]:
    """Call `first` in a transaction, and `second` in another thread before the transaction ends."""
    found: list[T] = []

    def later() -> None:
        try:
            found.append(second())
        finally:
            connections.close_all()

    thread = threading.Thread(target=later)
    with transaction.atomic():
        one = first()
        thread.start()
        thread.join(0.5)  # it waits for the end of this transaction
        assert not found
    thread.join(30)
    return one, found[0]


@pytest.mark.django_db(transaction=True)
def test_callers_at_once_make_one_schedule() -> None:
    one, other = behind(
        lambda: schedule("nightly", "1 3 * * *", "tests.noop"), lambda: schedule("nightly", "2 3 * * *", "tests.noop")
    )
    assert (one.is_new, other.is_new, other.id, other.changed) == (True, False, one.id, ("schedule",))
    assert Scheduler.objects.get().schedule == "2 3 * * *"


@pytest.mark.django_db(transaction=True)
def test_many_callers_at_once_make_one_schedule() -> None:
    found = at_once([partial(schedule, "nightly", f"{minute} 3 * * *", "tests.noop") for minute in range(10)])
    assert len({each.id for each in found}) == 1
    assert sum(each.is_new for each in found) == 1
    assert Scheduler.objects.count() == 1


# --- @worker(schedule=) --------------------------------------------------------------------------------


class Region(BaseModel):
    region: str


class RegionOrEurope(BaseModel):
    region: str = "eu"


@pytest.fixture
def register() -> Iterator[Callable[..., None]]:
    """Provide a function that registers a worker with a schedule, as the code of a deploy would."""

    def deploy(name: str, cron: Any, params: type[BaseModel] = RegionOrEurope) -> None:
        registry._handlers.pop(("worker", name), None)

        @worker(name, params=params, schedule=cron)
        def run(params: Any, run: Any) -> None: ...

        sync_targets()

    before = dict(registry._handlers)
    yield deploy
    registry._handlers.clear()
    registry._handlers.update(before)


def test_a_worker_brings_its_schedule(register: Callable[..., None]) -> None:
    register("tests.brings", "0 8 * * 1-5")
    row = Scheduler.objects.get()
    assert (row.schedule, row.status, str(row.target), row.params) == ("0 8 * * 1-5", True, "tests.brings", {})
    assert row.next_run_at is not None
    assert row.is_worker_default
    sync_targets()
    assert Scheduler.objects.count() == 1


def test_a_deleted_default_stays_deleted(register: Callable[..., None]) -> None:
    register("tests.brings", "0 8 * * 1-5")
    Scheduler.objects.all().delete()
    register("tests.brings", "0 9 * * 1-5")
    assert not Scheduler.objects.exists()


def test_a_changed_default_is_shown_and_not_applied(register: Callable[..., None], client: Client) -> None:
    register("tests.brings", "0 8 * * 1-5")
    row = Scheduler.objects.get()
    row.status = False
    row.save()
    client.force_login(UserFactory(superuser=True))
    page = f"/admin/scheduling/scheduler/{row.pk}/change/"  # the overview
    assert "made from the code of its worker. The code does not change" in client.get(page).content.decode()
    register("tests.brings", "0 9 * * 1-5")
    row.refresh_from_db()
    assert (row.schedule, row.status) == ("0 8 * * 1-5", False)
    for address in (page, f"/admin/scheduling/scheduler/{row.pk}/edit/"):
        assert "The code names another schedule now: 0 9 * * 1-5." in client.get(address).content.decode()


def test_the_page_says_which_name_code_uses_or_which_file_owns_it(client: Client) -> None:
    found = schedule("nightly", "0 3 * * *", "tests.noop")
    client.force_login(UserFactory(superuser=True))
    pages = [f"/admin/scheduling/scheduler/{found.id}/{page}/" for page in ("change", "edit")]
    for page in pages:
        assert "by the name “nightly”" in client.get(page).content.decode()
    Scheduler.objects.update(source_file="ops/jobs\u202e.yaml")
    for page in pages:
        shown = client.get(page).content.decode()
        assert "The schedule file “ops/jobs\\u202e.yaml” owns this schedule, as “nightly”" in shown
        assert "by the name" not in shown
    for words in ("night", "ops/jobs"):
        assert "1 schedule" in client.get("/admin/scheduling/scheduler/", {"q": words}).content.decode()


@pytest.mark.parametrize(
    ("cron", "params", "words"),
    [
        ("61 * * * *", RegionOrEurope, "outside 0-59"),
        ("0 0 31 2 *", RegionOrEurope, "fire"),
        (b"* * * * *", RegionOrEurope, "text"),
        ("0 8 * * *", Region, "region: must be given"),
    ],
)
def test_a_schedule_that_cannot_be_made_is_refused_at_registration(
    register: Callable[..., None], cron: Any, params: Any, words: str
) -> None:
    with pytest.raises(RegistryError, match=words):
        register("tests.brings", cron, params)
    assert not Worker.objects.filter(name="tests.brings").exists()


def test_a_row_whose_params_do_not_fit_stops_no_other_run(
    register: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    Worker.objects.create(name="tests.brings", params={"region": 7})
    register("tests.other", "0 7 * * *")
    register("tests.brings", "0 8 * * *")
    assert [str(row.target) for row in Scheduler.objects.all()] == ["tests.other"]
    assert "The schedule of worker 'tests.brings' cannot be made" in caplog.text
    Worker.objects.filter(name="tests.brings").update(params={})
    sync_targets()
    assert Scheduler.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_processes_that_start_at_once_make_one_default(register: Callable[..., None]) -> None:
    register("tests.brings", "0 8 * * *")
    Scheduler.objects.all().delete()
    Worker.objects.update(made_schedule="")
    behind(sync_targets, sync_targets)
    assert Scheduler.objects.count() == 1
    assert not SchedulerExecution.objects.exists()
