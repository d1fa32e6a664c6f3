"""Fixtures for the admin tests: clients of users with different permissions, and a browser."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.contrib.staticfiles.views import serve
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.test import Client, override_settings
from django.utils.cache import patch_cache_control
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from pytest_django.live_server_helper import LiveServer

from scheduling.admin.dashboard import heatmap
from scheduling.management.groups import make_groups
from tests.admin import installation
from tests.admin.chromium import ARGUMENTS, Visit, chromium_path
from tests.admin.operator_tasks import TASKS, Clicks, Counted, FirstPage, Table
from tests.factories import PASSWORD, UserFactory

MODELS = (
    "scheduler",
    "schedulerexecution",
    "failedexecution",
    "worker",
    "reminder",
    "calendar",
    "channel",
    "alert",
    "alertrule",
    "pause",
    "breaker",
    "event",
    "limitkey",
    "loweredlimit",
    "process",
)

VIEW = [f"scheduling.view_{model}" for model in (*MODELS, "review")]  # the review has no rows

OPERATE = [
    "scheduling.run_scheduler",
    "scheduling.backfill_scheduler",
    "scheduling.pause_scheduler",
    "scheduling.pause_work",
    "scheduling.rerun_execution",
    "scheduling.cancel_execution",
    "scheduling.republish_failedexecution",
    "scheduling.discard_failedexecution",
    "scheduling.acknowledge_alert",
]

Login = Callable[[User], Client]


@pytest.fixture(autouse=True)
def fresh_heat_map() -> Iterator[None]:
    """Forget the counts of the heat map, which the process keeps for a minute."""
    yield
    heatmap.forget()


def logged_in(user: User) -> Client:
    """Return a client that is logged in as this user."""
    client = Client()
    client.force_login(user)
    return client


def log_in(context: BrowserContext, user: User, url: str) -> None:
    """Log the browser in at this site, without the login page."""
    context.add_cookies([{"name": "sessionid", "value": logged_in(user).cookies["sessionid"].value, "url": url}])


def member(role: str) -> Client:
    """Return a test client. Its user is a member of this role's group only."""
    list(make_groups())
    user: User = UserFactory(username=role)
    user.groups.add(Group.objects.get(name=role))
    return logged_in(user)


@pytest.fixture
def editor(db: None) -> Client:
    """A client of a user who may do everything."""
    return logged_in(UserFactory(username="editor", superuser=True))


@pytest.fixture
def operator(db: None) -> Client:
    """A client of a user who may view everything, and may run, pause, cancel, republish and discard, but not edit."""
    return logged_in(UserFactory(username="operator", permissions=[*VIEW, *OPERATE]))


@pytest.fixture
def viewer(db: None) -> Client:
    """A client of a user who may view everything and change nothing."""
    return logged_in(UserFactory(username="viewer", permissions=VIEW))


@pytest.fixture
def no_rights(db: None) -> Client:
    """A client of a staff user without any permission."""
    return logged_in(UserFactory(username="no-rights"))


def said(response: Any) -> list[str]:
    """Return the Django messages on the page that the client reached after redirects."""
    return [str(message) for message in response.context["messages"]]


@pytest.fixture(scope="module")
def async_unsafe() -> Iterator[None]:
    """Allow the ORM in this thread. Django would refuse it, because Playwright runs an event loop in the thread."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        yield


@pytest.fixture(scope="module")
def browser(async_unsafe: None) -> Iterator[Browser]:
    """A Chromium browser. Without Chromium, the tests fail in CI and are skipped elsewhere."""
    path = chromium_path()
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("Chromium is missing. Debian: apt install chromium; or name one in CHROMIUM.")
        pytest.skip("needs Chromium (Debian: apt install chromium), or its path in CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        browser.close()


def serve_for_a_day(handler: StaticFilesHandler, request: HttpRequest) -> HttpResponseBase:
    """Send a static file, which the browser then keeps. A page has twenty of them, and the next page has the same."""
    response = serve(request, handler.file_path(request.path), insecure=True)
    patch_cache_control(response, max_age=86_400)
    return response


@pytest.fixture(scope="module")
def site(django_db_setup: None) -> Iterator[str]:
    """The URL of a server that runs during all tests of a module, with the site's Content-Security-Policy."""
    with override_settings(ALLOWED_HOSTS=["localhost"]), pytest.MonkeyPatch.context() as patch:
        patch.setattr(StaticFilesHandler, "serve", serve_for_a_day)
        server = LiveServer("localhost")
        yield server.url
        server.stop()


AXE_IMPORT = re.compile(r"/admin/(?!static).*/widgets\.css$")
"""axe-core requests the import of Django's forms.css as if its path began at the page. Most pages of the admin answer
such a path with a redirect, and a page without objects with 404."""


@pytest.fixture
def visit(browser: Browser, site: str) -> Iterator[Visit]:
    """A function that opens a page and logs in. The test fails if a page has an error or writes to the console."""
    said: list[str] = []
    contexts = []

    def open_page(
        user: str, scheme: str = "light", width: int = 1280, zone: str = "UTC", script: bool = True, strict: bool = True
    ) -> Page:
        context = browser.new_context(
            base_url=site,
            color_scheme=scheme,  # type: ignore[arg-type]
            viewport={"width": width, "height": 900},
            locale="en-US",
            timezone_id=zone,
            java_script_enabled=script,
            bypass_csp=not strict,
        )
        contexts.append(context)
        # No `context.route` here, because it would switch the browser's cache off.
        if script:
            log_in(context, User.objects.get(username=user), site)
        # The browser reports violations of the Content-Security-Policy as errors on the console.
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on(
            "console",
            lambda message: (
                AXE_IMPORT.search(message.location["url"]) or said.append(f"{page.url}: {message.type}: {message.text}")
            ),
        )
        page.on("pageerror", lambda error: said.append(f"{page.url}: {error}"))
        page.goto("/admin/")
        if not script:  # the login is a task that needs no script, too
            page.get_by_label("Username").fill(user)
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("button", name="Log out")).to_be_visible()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert said == []


@pytest.fixture(scope="session")
def task_table() -> Iterator[Table]:
    made = Table()
    yield made
    print(f"\n\n{made}")  # noqa: T201 - shown by `pytest -s`


@pytest.fixture
def first_page(transactional_db: None, visit: Visit) -> FirstPage:
    """A function that logs the operator in. Make the rows before the call, because the first page shows them."""
    installation.people_and_processes()

    def first_page_of_olga() -> Page:
        page = visit("olga", width=1440)
        expect(page.get_by_role("heading", name="Dashboard")).to_be_visible()
        return page

    return first_page_of_olga


@pytest.fixture
def task(task_table: Table) -> Counted:
    """A context that counts the clicks and loads of a task. It ends with the check of what the task has cost."""

    @contextmanager
    def counted(page: Page, name: str) -> Iterator[Clicks]:
        allowed, before = TASKS[name]
        clicks = Clicks(page)
        yield clicks
        cost = clicks.cost()
        task_table.add(name, cost, allowed, before)
        assert cost.clicks <= allowed.clicks, f"{name}: {cost} instead of {allowed}"
        assert cost.loads <= allowed.loads, f"{name}: {cost} instead of {allowed}"

    return counted
