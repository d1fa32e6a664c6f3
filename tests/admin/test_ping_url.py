"""The ping URL of a schedule is write-only: the form takes a new one, and no page, list or entry shows it."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from scheduling.handlers.secret_params import MASK
from scheduling.models import Ping, Scheduler
from tests.admin.addresses import every_address
from tests.admin.audit import entry_line
from tests.admin.conftest import logged_in
from tests.admin.rows import one_of_each
from tests.admin.scheduler_form import ADD, change, form, overview, worker
from tests.admin.walk import text_of
from tests.factories import PingFactory, SchedulerExecutionFactory, SchedulerFactory, UserFactory
from tests.http.client import ApiClient

pytestmark = pytest.mark.django_db

SECRET = "11111111-2222-3333-4444-555555555555"
URL = f"https://hc.example.com/ping/{SECRET}"
LIST = "/admin/scheduling/scheduler/"


def posted(**values: Any) -> dict[str, Any]:
    return form(worker=worker(), **values)


def lines() -> list[str]:
    return [entry_line(entry) for entry in LogEntry.objects.order_by("pk")]


def test_a_url_is_set_kept_replaced_and_removed(editor: Client) -> None:
    assert editor.post(ADD, posted(new_ping_url=URL)).status_code == 302
    row = Scheduler.objects.get()
    assert row.ping_url == URL
    editor.post(change(row), posted(description="Other"))
    assert Scheduler.objects.get().ping_url == URL
    editor.post(change(row), posted(new_ping_url="${CRON_PING_NIGHTLY}"))
    assert Scheduler.objects.get().ping_url == "${CRON_PING_NIGHTLY}"
    editor.post(change(row), posted(remove_ping_url="on"))
    assert Scheduler.objects.get().ping_url == ""
    told = " ".join(lines())
    assert SECRET not in told
    assert MASK in told
    assert "${CRON_PING_NIGHTLY}" in told


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("ftp://hc.example.com/x", "begins with http:// or https://"),
        ("${SECRET_KEY}", "begins with http:// or https://"),
        (f"http://localhost/{SECRET}", "has the internal address"),
        (f"http://169.254.169.254/{SECRET}", "has the internal address"),
    ],
)
def test_an_unusable_url_is_refused_and_not_repeated(editor: Client, typed: str, said: str) -> None:
    page = editor.post(ADD, posted(new_ping_url=typed)).content.decode()
    assert said in page
    assert SECRET not in page
    assert not Scheduler.objects.exists()


def test_a_service_has_no_ping_url(editor: Client) -> None:
    page = editor.post(ADD, posted(new_ping_url=URL, stay_alive="on")).content.decode()
    assert "never ends" in page


def test_no_page_shows_it(editor: Client, viewer: Client) -> None:
    rows = one_of_each()
    Scheduler.objects.update(ping_url=URL, stay_alive=False)
    row = rows["scheduler"][0]
    editor.post(change(row), posted(description="Other"))
    root = logged_in(UserFactory(username="root", superuser=True))
    paths = {address.path for address in every_address(rows) if address.name != "logout"}
    paths = {path for path in paths if path.startswith(f"{LIST}{row.pk}/")} | {LIST, f"{ADD}?copy={row.pk}"}
    assert {overview(row), change(row)} <= paths
    for client in (root, viewer):
        for path in sorted(paths):
            assert SECRET not in text_of(client.get(path)), path
    assert MASK in viewer.get(change(row)).content.decode()
    assert 'type="password"' not in viewer.get(change(row)).content.decode()


@pytest.mark.parametrize(
    "path",
    [
        "/admin/scheduling/scheduler/?ping_url__startswith=https",
        f"/admin/scheduling/scheduler/?ping_url={URL}",
        "/admin/scheduling/schedulerexecution/?scheduler__ping_url__startswith=https",
        "/admin/scheduling/worker/?schedulers__ping_url__startswith=https",
    ],
)
def test_no_list_can_be_filtered_by_it(path: str) -> None:
    SchedulerFactory(ping_url=URL)
    response = logged_in(UserFactory(superuser=True)).get(path)
    assert response.status_code in (302, 400)


def test_a_copy_has_no_ping_url(editor: Client) -> None:
    source = SchedulerFactory(ping_url=URL)
    editor.post(f"{ADD}?copy={source.pk}", posted())
    assert [row.ping_url for row in Scheduler.objects.order_by("pk")] == [URL, ""]


def test_a_deletion_does_not_tell_it(editor: Client) -> None:
    row = SchedulerFactory(ping_url=URL)
    editor.post(reverse("admin:scheduling_scheduler_delete", args=[row.pk]), {"post": "yes"})
    assert not Scheduler.objects.exists()
    assert SECRET not in " ".join(lines())


def test_the_api_takes_it_and_shows_a_mask(settings: Any) -> None:
    client = ApiClient(UserFactory(superuser=True))
    made = client.post("schedulers", {"schedule": "0 8 * * *", "worker": "tests.noop", "ping_url": URL})
    assert made.status_code == 201, made.content
    shape = made.json()
    assert shape["ping_url"] == MASK
    path = f"schedulers/{shape['id']}"
    assert client.send("PATCH", path, {"ping_url": MASK, "description": "x"}).json()["ping_url"] == MASK
    assert Scheduler.objects.get().ping_url == URL
    assert client.send("PATCH", path, {"ping_url": "${CRON_PING_A}"}).json()["ping_url"] == "${CRON_PING_A}"
    refused = client.send("PATCH", path, {"ping_url": f"http://127.0.0.1/{SECRET}"})
    assert refused.status_code == 422
    assert SECRET not in refused.content.decode()
    assert client.send("PATCH", path, {"ping_url": ""}).json()["ping_url"] == ""
    assert client.send("PATCH", path, {"ping_url": MASK}).status_code == 422
    assert SECRET not in " ".join(lines())


def test_the_page_of_a_run_tells_what_its_monitors_were_told(viewer: Client) -> None:
    execution = SchedulerExecutionFactory(succeeded=True, scheduler__ping_url=URL)
    PingFactory(execution=execution, event="start", host="hc.example.com")
    PingFactory(execution=execution, dropped=True)
    PingFactory(execution=execution, kind="sentry", waiting=True, tries=3)
    page = text_of(viewer.get(reverse("admin:scheduling_schedulerexecution_change", args=[execution.pk])))
    assert "Told hc.example.com, <time" in page
    assert "Not delivered: The server answered 404: no such check" in page
    assert "Tries so far: 3. The server answered 503: no text" in page
    assert SECRET not in page


def test_a_run_without_a_monitor_has_no_such_part(viewer: Client) -> None:
    execution = SchedulerExecutionFactory(succeeded=True)
    page = viewer.get(reverse("admin:scheduling_schedulerexecution_change", args=[execution.pk])).content.decode()
    assert 'id="monitors"' not in page
    assert not Ping.objects.exists()
