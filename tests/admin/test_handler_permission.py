"""`permission=` of a handler: a user who lacks it sees its rows, and cannot change or run them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.test import Client

from scheduling.handlers import find, register
from scheduling.management.groups import EDITOR, make_groups
from scheduling.models import Scheduler, SchedulerExecution
from tests.admin.conftest import logged_in, said
from tests.admin.scheduler_form import ADD, change, form, overview, worker
from tests.admin.walk import press_all, text_of
from tests.admin.world import world
from tests.factories import (
    FailedExecutionFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
    WorkerFactory,
)

pytestmark = [pytest.mark.django_db, pytest.mark.database]
S = "/admin/scheduling"
NEEDED = "auth.view_permission"
SENTENCE = f"You may look at it, but not change or run it: its code asks for the permission “{NEEDED}”."


@pytest.fixture(autouse=True)
def guarded() -> Iterator[None]:
    """The worker `tests.fail` asks for a permission."""
    free = find("worker", "tests.fail")
    register(replace(free, permission=NEEDED))
    yield
    register(free)


@pytest.fixture
def user(db: None) -> User:
    list(make_groups())
    found: User = UserFactory(username="ann")
    found.groups.add(Group.objects.get(name=EDITOR))
    return found


@pytest.fixture
def lacking(user: User) -> Client:
    return logged_in(user)


@pytest.fixture
def holding(user: User, lacking: Client) -> Client:
    holder: User = UserFactory(username="holder")
    holder.groups.add(Group.objects.get(name=EDITOR))
    holder.user_permissions.add(Permission.objects.get(codename="view_permission"))
    return logged_in(holder)


@pytest.fixture
def row(db: None) -> Scheduler:
    made: Scheduler = SchedulerFactory(handler="tests.fail", description="Payroll")
    return made


def pages(row: Scheduler) -> list[str]:
    """The addresses that act on rows of the handler."""
    failed = FailedExecutionFactory(scheduler=row)
    running = SchedulerExecutionFactory(scheduler=row, running=True)
    return [
        *(f"{S}/scheduler/{row.pk}/{page}/" for page in ("run", "pause", "resume")),
        f"{S}/worker/{row.worker_id}/run/",  # type: ignore[attr-defined]
        *(f"{S}/schedulerexecution/{failed.pk}/{page}/" for page in ("rerun", "rerun/edit")),
        f"{S}/schedulerexecution/{running.pk}/cancel/",
        *(f"{S}/failedexecution/{failed.pk}/{page}/" for page in ("republish", "discard", "edit")),
    ]


def test_the_rows_are_seen_and_say_why_there_are_no_buttons(lacking: Client, row: Scheduler) -> None:
    run = FailedExecutionFactory(scheduler=row)
    for address in (overview(row), f"{S}/schedulerexecution/{run.pk}/change/", f"{S}/worker/{row.worker_id}/change/"):  # type: ignore[attr-defined]
        page = text_of(lacking.get(address))
        assert SENTENCE in page, address
        page = page.replace('/scheduling/pause/"', "")  # the list of pauses in the sidebar
        for button in ("/run/", "/pause/", "/republish/", "/rerun/", "/discard/", "/edit/", "/delete/"):
            assert f'{button}"' not in page, (address, button)
    page = text_of(lacking.get(change(row)))
    assert SENTENCE in page
    assert 'name="_save"' not in page


def test_each_act_is_refused_with_a_sentence(lacking: Client, row: Scheduler) -> None:
    addresses = pages(row)
    before = world()
    for address in addresses:
        for response in (lacking.get(address, follow=True), lacking.post(address, {"post": "yes"}, follow=True)):
            assert SENTENCE in said(response), address
        assert world() == before, address


def test_the_holder_of_the_permission_acts(holding: Client, row: Scheduler) -> None:
    for address in pages(row):
        response = holding.get(address)
        assert response.status_code in (200, 302), address
        assert SENTENCE not in text_of(response)
    holding.post(f"{S}/scheduler/{row.pk}/run/", {})
    assert SchedulerExecution.objects.filter(trigger="manual", scheduler=row).exists()


def test_the_target_is_not_offered_and_a_tampered_form_is_refused(
    lacking: Client, holding: Client, row: Scheduler
) -> None:
    pk = worker("tests.fail")
    assert f'value="{pk}"' not in text_of(lacking.get(ADD)).partition('id="id_worker"')[2].partition("</select>")[0]
    response = lacking.post(ADD, form(worker=pk))
    assert response.status_code == 200
    assert "You may not choose this target: it is deleted, or its code asks for a permission" in text_of(response)
    other = SchedulerFactory()
    assert lacking.post(change(other), form(worker=pk)).status_code == 200
    other.refresh_from_db()
    assert other.target_id != pk
    assert holding.post(ADD, form(worker=pk, params="{}")).status_code == 302


def test_the_schedule_and_the_target_cannot_be_edited_or_deleted(lacking: Client, row: Scheduler) -> None:
    before = world()
    target = f"{S}/worker/{row.worker_id}"  # type: ignore[attr-defined]
    for address, data in (
        (change(row), form(worker=worker())),
        (f"{S}/scheduler/{row.pk}/delete/", {"post": "yes"}),
        (f"{target}/change/", {"title": "x", "params": "{}"}),
        (f"{target}/delete/", {"post": "yes"}),
        (f"{S}/scheduler/", {"action": "delete_selected", "_selected_action": [row.pk], "post": "yes"}),
    ):
        text_of(lacking.post(address, data))
        assert world() == before, address


@pytest.mark.parametrize("action", ["run_selected", "pause_selected"])
def test_an_action_on_schedules_leaves_them_out_and_says_so(lacking: Client, row: Scheduler, action: str) -> None:
    free = SchedulerFactory()
    data = {"action": action, "_selected_action": [row.pk, free.pk], "post": "yes", "reason": "known"}
    response = lacking.post(f"{S}/scheduler/", data, follow=True)
    assert "1 of them is left out: its code asks for a permission that you lack." in said(response)
    row.refresh_from_db()
    free.refresh_from_db()
    assert row.status
    if action == "run_selected":
        assert [run.scheduler for run in SchedulerExecution.objects.all()] == [free]
    else:
        assert not free.status


@pytest.mark.parametrize(("action", "state"), [("republish_selected", "queued"), ("discard_selected", "discarded")])
@pytest.mark.parametrize("canary", ["", "on"])
def test_an_action_on_failures_leaves_them_out(
    lacking: Client, row: Scheduler, action: str, state: str, canary: str
) -> None:
    kept, *free = [FailedExecutionFactory(scheduler=row), FailedExecutionFactory(), FailedExecutionFactory()]
    data = {
        "action": action, "_selected_action": ["all"], "select_across": "1", "post": "yes", "reason": "known",
        "count": "3", "typed": "3", "query": "", "canary": canary, "minutes": "0",
    }  # fmt: skip
    response = lacking.post(f"{S}/failedexecution/", data, follow=True)
    assert "1 of them is left out: its code asks for a permission that you lack." in said(response)
    states = {run.pk: run.state for run in SchedulerExecution.objects.all()}
    assert states[kept.pk] == "failed"
    assert state in [states[run.pk] for run in free]


def test_no_button_of_the_lists_acts_on_them(lacking: Client, user: User, row: Scheduler) -> None:
    """The dashboard, the inbox and its groups show no button that would be refused."""
    failed = FailedExecutionFactory(scheduler=row)
    SchedulerExecutionFactory(scheduler=row, running=True)
    for address in (
        f"{S}/dashboard/?everything",
        f"{S}/failedexecution/?group=each",
        f"{S}/failedexecution/?group=error",
    ):
        page = text_of(lacking.get(address))
        assert f"/{failed.pk}/republish/" not in page, address
        assert f"/scheduler/{row.pk}/run/" not in page
        assert f"/scheduler/{row.pk}/pause/" not in page
        assert "/cancel/" not in page
        assert 'value="republish_selected" formaction' not in page
    free = FailedExecutionFactory(error_class="OSError")
    page = text_of(lacking.get(f"{S}/failedexecution/?group=each"))
    assert f"/{free.pk}/republish/" in page


def test_a_run_of_a_schedule_that_now_has_guarded_code_is_not_run_again(lacking: Client) -> None:
    row = SchedulerFactory()
    run = SchedulerExecutionFactory(scheduler=row, succeeded=True)
    Scheduler.objects.filter(pk=row.pk).update(worker=WorkerFactory(name="tests.fail"))
    response = lacking.post(f"{S}/schedulerexecution/{run.pk}/rerun/", {}, follow=True)
    assert SENTENCE in said(response)
    assert SchedulerExecution.objects.count() == 1


def test_no_button_of_the_pages_of_such_rows_changes_anything(lacking: Client, row: Scheduler) -> None:
    from tests.admin.addresses import every_address
    from tests.admin.rows import one_of_each

    rows: dict[str, Any] = {**one_of_each(), "scheduler": [row], "worker": [row.worker]}  # type: ignore[attr-defined]
    failed = FailedExecutionFactory(scheduler=row)
    rows |= {"schedulerexecution": [failed], "failedexecution": [failed]}
    own = ("scheduler", "worker", "schedulerexecution", "failedexecution")
    addresses = [address for address in every_address(rows) if address.model in own and address.row is not None]
    assert press_all(lacking, addresses, {}) == {}
