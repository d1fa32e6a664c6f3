"""Operators pause a handler, a queue or everything, see why runs wait, and resume."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from bs4 import BeautifulSoup
from django.contrib.admin.models import LogEntry
from django.test import Client, override_settings
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.handlers import registry
from scheduling.handlers.targets import handler_named
from scheduling.models import Pause
from tests.admin.audit import entry_line
from tests.admin.conftest import OPERATE, VIEW, logged_in, said
from tests.admin.pages import text_in
from tests.factories import (
    GroupFactory,
    ManualExecutionFactory,
    PauseFactory,
    SchedulerFactory,
    UserFactory,
    WorkerFactory,
)

pytestmark = pytest.mark.django_db

ADD = "admin:scheduling_pause_add"
NOOP = "handler:worker:tests.noop"


def pause(client: Client, what: str = NOOP, reason: str = "It deletes\ntoo much", **ends: str) -> Any:
    return client.post(reverse(ADD), {"what": what, "reason": reason, **ends})


def errors(response: Any) -> str:
    return " ".join(each.get_text(" ", strip=True) for each in soup(response).select(".errorlist"))


def text_of(client: Client, address: str) -> str:
    return text_in(client.get(address))


def soup(response: Any) -> BeautifulSoup:
    return BeautifulSoup(response.content, "html.parser")


@pytest.mark.parametrize(
    ("what", "scope", "type_", "name"),
    [
        (NOOP, "handler", "worker", "tests.noop"),
        ("handler:reminder:send", "handler", "reminder", "send"),
        ("queue:main", "queue", "", "main"),
        ("site", "site", "", ""),
    ],
)
def test_an_operator_pauses_and_resumes(operator: Client, what: str, scope: str, type_: str, name: str) -> None:
    pause(operator, what)
    row = Pause.objects.get()
    assert (row.scope, row.type, row.name, row.reason) == (scope, type_, name, "It deletes too much")
    assert (row.paused_by, row.ends_at) == ("operator", None)
    page = operator.get(reverse("admin:scheduling_pause_change", args=[row.pk]))
    (button,) = soup(page).select(".sch-tool form")
    assert operator.get(str(button["action"])).status_code == 405
    operator.post(str(button["action"]))
    row.refresh_from_db()
    assert row.ends_at is not None
    assert row.ends_at <= clock.now()
    lines = [entry_line(entry) for entry in LogEntry.objects.order_by("pk")]
    assert "reason: (empty) -> It deletes too much" in lines[0]
    assert lines[1] == "resume; reason: It deletes too much -> (empty)"
    assert "not paused" in said(operator.post(str(button["action"]), follow=True))[-1]


def test_what_is_paused_is_not_paused_twice(operator: Client) -> None:
    PauseFactory(name="tests.noop")
    assert "paused already" in errors(pause(operator))
    assert Pause.objects.count() == 1


def test_what_was_resumed_a_moment_ago_can_be_paused_again(operator: Client) -> None:
    PauseFactory(name="tests.noop", ended=True)
    pause(operator)
    row = Pause.objects.get()
    assert (row.paused_by, row.ends_at) == ("operator", None)


@pytest.mark.parametrize("what", ["", "handler:worker:unknown", "queue:", "site:", "handler", "\0", "x" * 1000])
def test_what_cannot_be_paused_is_refused(operator: Client, what: str) -> None:
    assert errors(pause(operator, what))
    assert errors(pause(operator, reason=" \n "))
    assert not Pause.objects.exists()


def test_an_end_that_has_passed_is_refused(operator: Client) -> None:
    refused = pause(operator, ends_at_0="2020-01-01", ends_at_1="00:00:00")
    assert errors(refused) == "This time has passed."
    later = clock.now() + timedelta(days=2)
    pause(operator, ends_at_0=f"{later:%Y-%m-%d}", ends_at_1="00:00:00")
    ends_at = Pause.objects.get().ends_at
    assert ends_at is not None
    assert ends_at > clock.now()


def test_the_reason_and_the_end_can_be_changed_but_not_what_is_paused(operator: Client) -> None:
    row = PauseFactory(name="tests.noop")
    address = reverse("admin:scheduling_pause_change", args=[row.pk])
    operator.post(address, {"what": "site", "reason": "Still broken"})
    row.refresh_from_db()
    assert (row.scope, row.name, row.reason, row.paused_by) == ("handler", "tests.noop", "Still broken", "ann")


def test_a_viewer_sees_pauses_and_may_not_change_them(viewer: Client) -> None:
    row = PauseFactory()
    assert pause(viewer).status_code == 403
    assert viewer.post(reverse("admin:scheduling_pause_resume", args=[row.pk])).status_code == 403
    assert row.name in text_of(viewer, reverse("admin:scheduling_pause_changelist"))


def test_a_user_who_sees_some_groups_only_may_not_stop_the_runs_of_others() -> None:
    SchedulerFactory(group=GroupFactory())
    user = UserFactory(permissions=[f"scheduling.{each}" for each in ("view_pause", "pause_work", "view_dashboard")])
    client = logged_in(user)
    assert pause(client).status_code == 403
    assert "Freeze" not in text_of(client, reverse("admin:scheduling_dashboard_changelist"))
    seeing = logged_in(
        UserFactory(permissions=[f"scheduling.{each}" for each in ("view_pause", "pause_work", "view_all_groups")])
    )
    assert pause(seeing).status_code == 302


def test_a_run_says_that_it_waits_for_a_pause(viewer: Client) -> None:
    PauseFactory(name="tests.noop")
    address = "admin:scheduling_schedulerexecution_change"
    queued = ManualExecutionFactory(state="queued", wake_at=clock.now())
    text = text_of(viewer, reverse(address, args=[queued.pk]))
    assert "The worker 'tests.noop' is paused by ann: The warehouse moves." in text
    assert "It waits, and starts when the pause has ended." in text
    retrying = ManualExecutionFactory(retrying=True, attempt=1)
    text = text_of(viewer, reverse(address, args=[retrying.pk]))
    assert "Attempt 1 failed" in text
    assert "is paused by ann" in text
    over = ManualExecutionFactory(succeeded=True)
    assert "is paused" not in text_of(viewer, reverse(address, args=[over.pk]))


def test_the_pages_of_a_handler_and_of_a_schedule_say_that_their_runs_wait(operator: Client) -> None:
    schedule = SchedulerFactory(queue="mail")
    worker = reverse("admin:scheduling_worker_change", args=[schedule.worker.pk])
    own = reverse("admin:scheduling_scheduler_change", args=[schedule.pk])
    (link,) = soup(operator.get(worker)).select(".object-tools a[href*=pause]")
    form = soup(operator.get(str(link["href"])))
    assert [str(each["value"]) for each in form.select("option[selected]")] == [NOOP]
    PauseFactory(of_queue=True, name="mail")
    assert "The queue 'mail' is paused" in text_of(operator, own)
    assert "is paused" not in text_of(operator, worker), "its other runs may start"
    pause(operator)
    assert "The worker 'tests.noop' is paused by operator" in text_of(operator, worker)
    assert not soup(operator.get(worker)).select(".object-tools a[href*=pause]")


def test_a_handler_that_asks_for_a_permission_is_paused_and_resumed_by_its_holders_only(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = handler_named("worker", "tests.noop")
    assert handler is not None
    monkeypatch.setitem(registry._handlers, ("worker", "tests.noop"), replace(handler, permission="auth.add_user"))
    assert "not one of the available choices" in errors(pause(operator))
    row = PauseFactory(name="tests.noop")
    address = reverse("admin:scheduling_pause_change", args=[row.pk])
    assert "asks for the permission" in text_of(operator, address)
    assert not soup(operator.get(address)).select(".sch-tool")
    assert operator.post(address, {"reason": "No"}).status_code == 403
    answer = operator.post(reverse("admin:scheduling_pause_resume", args=[row.pk]), follow=True)
    assert "asks for the permission" in said(answer)[-1]
    row.refresh_from_db()
    assert (row.reason, row.ends_at) == ("The warehouse moves", None)


@override_settings(TIME_ZONE="Europe/Berlin")
@time_machine.travel(datetime(2026, 10, 24, 12, tzinfo=UTC), tick=False)
@pytest.mark.parametrize("end", [datetime(2026, 10, 25, 0, 30, tzinfo=UTC), datetime(2026, 10, 25, 1, 30, tzinfo=UTC)])
def test_another_reason_keeps_an_end_in_a_repeated_hour(operator: Client, end: datetime) -> None:
    row = PauseFactory(name="tests.noop", ends_at=end)
    address = reverse("admin:scheduling_pause_change", args=[row.pk])
    values = {"reason": "It takes longer", "ends_at_0": "2026-10-25", "ends_at_1": "02:30:00"}
    assert operator.post(address, values).status_code == 302
    row.refresh_from_db()
    assert (row.reason, row.ends_at) == ("It takes longer", end)
    # A time that is typed anew must be clear.
    assert "may be ambiguous" in errors(operator.post(address, {**values, "ends_at_1": "02:31:00"}))
    assert operator.post(address, {**values, "ends_at_0": ""}).status_code == 200
    assert operator.post(address, {**values, "ends_at_0": "", "ends_at_1": ""}).status_code == 302
    row.refresh_from_db()
    assert row.ends_at is None


def test_a_target_without_a_handler_has_its_page(operator: Client) -> None:
    row = WorkerFactory(name="tests.unknown")
    assert operator.get(reverse("admin:scheduling_worker_change", args=[row.pk])).status_code == 200


def test_the_dashboard_has_the_switch_and_names_what_is_paused() -> None:
    operator = logged_in(UserFactory(username="operator", permissions=[*VIEW, *OPERATE, "scheduling.view_dashboard"]))
    dashboard = reverse("admin:scheduling_dashboard_changelist")
    (switch,) = soup(operator.get(dashboard)).select("a[href*='what=site']")
    form = soup(operator.get(str(switch["href"])))
    assert [str(each["value"]) for each in form.select("option[selected]")] == ["site"]
    pause(operator, "site", "We move")
    text = text_of(operator, dashboard)
    assert "Everything is paused: resume" in text
    assert "We move" in text
    assert "Handlers, queues or the whole site are paused: 1." in text
