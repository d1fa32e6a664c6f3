"""Every view checks the user's permission, because hiding a button is no protection. Every change needs a POST."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from scheduling.models import Scheduler, SchedulerExecution
from tests.admin.conftest import MODELS, OPERATE, VIEW, logged_in
from tests.factories import (
    AlertFactory,
    AlertRuleFactory,
    BreakerFactory,
    CalendarFactory,
    ChannelFactory,
    EventFactory,
    FailedExecutionFactory,
    LimitKeyFactory,
    LoweredLimitFactory,
    OutputFactory,
    PauseFactory,
    ProcessFactory,
    ReminderFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
    WorkerFactory,
)


@pytest.fixture
def rows(db: None) -> dict[str, Any]:
    """One row of each model that has pages."""
    execution = SchedulerExecutionFactory()
    OutputFactory(execution=execution)
    return {
        "scheduler": execution.scheduler,
        "schedulerexecution": execution,
        "failedexecution": FailedExecutionFactory(),
        "worker": WorkerFactory(),
        "reminder": ReminderFactory(),
        "calendar": CalendarFactory(),
        "channel": ChannelFactory(),
        "alert": AlertFactory(),
        "alertrule": AlertRuleFactory(),
        "pause": PauseFactory(),
        "breaker": BreakerFactory(),
        "event": EventFactory(),
        "limitkey": LimitKeyFactory(),
        "loweredlimit": LoweredLimitFactory(),
        "process": ProcessFactory(),
    }


def address(model: str, name: str, row: Any = None) -> str:
    """Return the URL of an admin page of a model, or of an admin page of one row."""
    return reverse(f"admin:scheduling_{model}_{name}", args=[] if row is None else [row.pk])


def pages(rows: dict[str, Any]) -> list[str]:
    """Return the URLs of the pages that only show rows."""
    return [
        *(address(model, "changelist") for model in MODELS),
        *(address(model, "change", rows[model]) for model in MODELS if model != "failedexecution"),
        *(address(model, "history", rows[model]) for model in MODELS),
        address("failedexecution", "changelist") + "?group=error",
        address("schedulerexecution", "output", rows["schedulerexecution"]),
    ]


def stored_values() -> tuple[Any, ...]:
    """Return the stored values that a permitted POST changes. A refused POST must leave these values unchanged."""
    return (
        sorted(Scheduler.objects.values_list("pk", "status", "description")),
        sorted(SchedulerExecution.objects.values_list("pk", "state", "cancel_requested_by")),
        LogEntry.objects.count(),
    )


def posts(rows: dict[str, Any]) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return the POSTs that change something. Each key begins with the permission that the POST needs."""
    schedule, execution, failed = rows["scheduler"].pk, rows["schedulerexecution"], rows["failedexecution"].pk

    def act(model: str, action: str, pk: int, **more: str) -> tuple[str, dict[str, Any]]:
        data = {"action": action, "_selected_action": [pk], "select_across": "0", "post": "yes", **more}
        return address(model, "changelist"), data

    return {
        "run_scheduler": (address("scheduler", "run", rows["scheduler"]), {}),
        "run_scheduler, in the list": act("scheduler", "run_selected", schedule),
        "pause_scheduler": act("scheduler", "pause_selected", schedule),
        "pause_scheduler, resumed": (address("scheduler", "resume", rows["scheduler"]), {}),
        "pause_scheduler, on its page": (address("scheduler", "pause", rows["scheduler"]), {"reason": "known"}),
        "cancel_execution": (address("schedulerexecution", "cancel", execution), {}),
        "rerun_execution": (address("schedulerexecution", "rerun", execution), {}),
        "republish_failedexecution": act("failedexecution", "republish_selected", failed),
        "republish_failedexecution, edited": (
            address("failedexecution", "edit", rows["failedexecution"]),
            {"post": "yes", "params": "{}", "attempt": rows["failedexecution"].attempt},
        ),
        "discard_failedexecution": act("failedexecution", "discard_selected", failed, reason="known"),
    }


def test_user_without_permissions_sees_nothing(no_rights: Client, rows: dict[str, Any]) -> None:
    for page in pages(rows):
        assert no_rights.get(page).status_code == 403, page


def test_an_anonymous_user_is_sent_to_the_login_page(db: None, rows: dict[str, Any]) -> None:
    for page in pages(rows):
        response = Client().get(page)
        assert response.status_code == 302, page
        assert "/login/" in response["Location"]


@pytest.mark.slow
@pytest.mark.parametrize("who", ["viewer", "operator", "editor"])
def test_users_with_view_permissions_can_open_all_pages(
    who: str, rows: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    client = request.getfixturevalue(who)
    for page in pages(rows):
        assert client.get(page).status_code == 200, page


def test_a_viewer_sees_no_buttons(viewer: Client, rows: dict[str, Any]) -> None:
    for page in pages(rows):
        response = viewer.get(page)
        if response.streaming:
            continue
        body = response.content.decode().split('id="content-main"')[1]
        for button in ('name="_save"', "/run/", "/cancel/", "/rerun/", "republish_selected", "action-select", "/add/"):
            assert button not in body, (page, button)


@pytest.mark.parametrize("who", ["no_rights", "viewer"])
def test_a_post_without_permission_changes_nothing(
    who: str, rows: dict[str, Any], request: pytest.FixtureRequest
) -> None:
    client, before = request.getfixturevalue(who), stored_values()
    for name, (target, data) in posts(rows).items():
        response = client.post(target, data)
        # A list ignores an action that it does not offer, and is shown again. Other pages answer 403.
        assert response.status_code in (200, 302, 403), name
        assert stored_values() == before, name
    for model in MODELS:
        assert client.post(address(model, "change", rows[model]), {"description": "x"}).status_code in (302, 403, 405)
        assert client.post(address(model, "delete", rows[model]), {"post": "yes"}).status_code == 403
        assert client.post(address(model, "add"), {"description": "x"}).status_code == 403
    assert stored_values() == before


@pytest.mark.slow
def test_each_permission_allows_only_its_own_action(rows: dict[str, Any]) -> None:
    for permission in OPERATE:
        client, own = logged_in(UserFactory(permissions=[*VIEW, permission])), permission.removeprefix("scheduling.")
        for name, (target, data) in posts(rows).items():
            if name.split(",")[0] == own:
                continue
            before = stored_values()
            assert client.post(target, data).status_code in (200, 302, 403), (permission, name)
            assert stored_values() == before, (permission, name)


def test_an_operator_can_use_every_action(operator: Client, rows: dict[str, Any]) -> None:
    for name, (target, data) in posts(rows).items():
        if name == "cancel_execution":
            SchedulerExecution.objects.filter(pk=rows["schedulerexecution"].pk).update(state="queued")
        if "_failedexecution" in name:
            SchedulerExecution.objects.filter(pk=rows["failedexecution"].pk).update(state="failed")
        before = stored_values()
        assert operator.post(target, data).status_code == 302, name
        assert stored_values() != before, name


def test_a_permission_to_act_is_not_a_permission_to_view(rows: dict[str, Any]) -> None:
    client, before = logged_in(UserFactory(permissions=OPERATE)), stored_values()
    for name, (target, data) in posts(rows).items():
        assert client.post(target, data).status_code == 403, name
        assert client.get(target).status_code == 403, name
    assert stored_values() == before


def test_a_get_request_changes_nothing(editor: Client, rows: dict[str, Any]) -> None:
    before = stored_values()
    for name, (target, data) in posts(rows).items():
        assert editor.get(target, data).status_code in (200, 302), name
        assert stored_values() == before, name


def test_every_post_needs_a_csrf_token(rows: dict[str, Any]) -> None:
    client, before = Client(enforce_csrf_checks=True), stored_values()
    client.force_login(UserFactory(superuser=True))
    for name, (target, data) in posts(rows).items():
        assert client.post(target, data).status_code == 403, name
    assert stored_values() == before


def test_an_editor_can_pause_without_the_pause_permission(rows: dict[str, Any]) -> None:
    client = logged_in(UserFactory(permissions=[*VIEW, "scheduling.change_scheduler"]))
    target, data = posts(rows)["pause_scheduler"]
    client.post(target, data)
    rows["scheduler"].refresh_from_db()
    assert not rows["scheduler"].status


def test_history_is_read_only(editor: Client, rows: dict[str, Any]) -> None:
    for model in ("schedulerexecution", "failedexecution", "process"):
        for name, row in (("add", None), ("delete", rows[model])):
            for method in (editor.get, editor.post):
                assert method(address(model, name, row)).status_code == 403, (model, name)
    assert editor.post(address("process", "change", rows["process"]), {"pid": "1"}).status_code == 403


def test_pages_link_only_to_pages_that_the_user_may_view(db: None, rows: dict[str, Any]) -> None:
    client = logged_in(UserFactory(permissions=["scheduling.view_schedulerexecution"]))
    page = client.get(address("schedulerexecution", "change", rows["schedulerexecution"])).content.decode()
    assert "/admin/scheduling/scheduler/" not in page
    assert "/admin/scheduling/worker/" not in page


def test_a_lookup_in_an_address_cannot_read_related_rows(viewer: Client, rows: dict[str, Any]) -> None:
    lookups: list[Callable[[], Any]] = [
        lambda: viewer.get(address("schedulerexecution", "changelist") + "?scheduler__user__password__startswith=a"),
        lambda: viewer.get(address("scheduler", "changelist") + "?user__password__startswith=a"),
    ]
    for lookup in lookups:
        assert lookup().status_code == 400


def test_a_hostile_user_name_is_escaped(rows: dict[str, Any]) -> None:
    client = logged_in(UserFactory(username="<b>x</b>", superuser=True))
    client.post(address("scheduler", "run", rows["scheduler"]))
    execution = SchedulerExecution.objects.latest("id")
    page = client.get(address("schedulerexecution", "change", execution)).content.decode()
    assert "&lt;b&gt;x&lt;/b&gt;" in page
    assert "<b>x</b>" not in page
    SchedulerFactory()
