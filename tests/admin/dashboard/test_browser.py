"""The dashboard in a real browser, under a Content-Security-Policy that allows nothing inline."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone as clock

from scheduling.models import SchedulerExecution
from tests.admin.dashboard.conftest import PAGE
from tests.factories import PASSWORD, ProcessFactory, SchedulerExecutionFactory, SchedulerFactory, UserFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome") or ""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The system's Chromium; a laptop without it skips, CI does not."""
    if not CHROMIUM:
        if os.environ.get("CI"):
            pytest.fail("Chromium is not installed; .ci/run installs it.")
        pytest.skip("Chromium is not installed.")
    sync_api = pytest.importorskip("playwright.sync_api")
    # Playwright's loop runs in this thread, and Django takes it for an asynchronous caller.
    former = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()
    if former is None:
        del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
    else:
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = former


@pytest.fixture
def said() -> list[str]:
    """What the console and uncaught errors said; each test ends with nothing there."""
    return []


@pytest.fixture
def page(browser: Any, live_server: Any, said: list[str]) -> Iterator[Any]:
    """The dashboard, as a superuser sees it, in a window of one's own."""
    user = UserFactory(username="operator", superuser=True)
    client = Client()
    client.login(username=user.username, password=PASSWORD)
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    cookie = client.cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": live_server.url}])
    context.route("**/favicon.ico", lambda route: route.fulfill(status=204))

    def strictly(route: Any) -> None:
        answer = route.fetch(max_redirects=0)
        route.fulfill(response=answer, headers={**answer.headers, "content-security-policy": CSP})

    context.route(lambda url: "/admin/" in url and "/static/" not in url, strictly)
    opened = context.new_page()
    opened.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.goto(live_server.url + PAGE)
    yield opened
    # Closing a window breaks off what it still asks for; that is no fault of the page.
    heard = list(said)
    opened.unroute_all(behavior="ignoreErrors")
    context.unroute_all(behavior="ignoreErrors")
    context.close()
    assert heard == []


@pytest.fixture
def _rows(transactional_db: None) -> None:
    row = SchedulerFactory(schedule="*/5 * * * *")
    for trait in ("succeeded", "failed", "skipped", "failed", "failed", "failed", "running", "retrying"):
        SchedulerExecutionFactory(scheduler=row, **{trait: True})
    ProcessFactory(producer=True)
    ProcessFactory(silent=True)


def wait_for_tile(page: Any, number: int, value: str) -> None:
    page.wait_for_function(
        "([n, v]) => document.querySelectorAll('.dash-tile-value')[n].textContent === v", arg=[number, value]
    )


@pytest.mark.usefixtures("_rows")
def test_every_part_is_there_and_the_console_is_silent(page: Any) -> None:
    for name in ("Needs attention", "Running", "Last 7 days", "Next 60 minutes", "Schedules"):
        assert page.get_by_role("heading", name=name, exact=True).count() == 1, name
    assert page.get_by_role("link", name="Failed").first.is_visible()
    assert page.locator("svg[role=img], svg[role=group]").evaluate_all(
        "all => all.every(each => each.getAttribute('aria-label') && each.querySelector('title'))"
    )


@pytest.mark.usefixtures("_rows")
def test_parts_are_refreshed_and_a_screen_reader_hears_the_counts(page: Any) -> None:
    wait_for_tile(page, 3, "4")
    SchedulerExecution.objects.filter(state="failed").update(state="discarded")
    wait_for_tile(page, 3, "0")
    page.wait_for_function("() => document.querySelector('[data-poll-live]').textContent.includes('0 failed')")


@pytest.mark.usefixtures("_rows")
def test_focus_stays_where_it_was(page: Any) -> None:
    tile = "document.querySelectorAll('.dash-tile')[3]"
    page.evaluate(f"{tile}.focus(); {tile}.dataset.old = 'yes'")
    page.wait_for_function(f"() => !{tile}.dataset.old")
    assert page.evaluate(f"document.activeElement === {tile}")


@pytest.mark.usefixtures("_rows")
def test_it_is_switched_off_and_stays_so(page: Any) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/part/" in request.url else None)
    page.get_by_role("button", name="Refreshing: on").click()
    page.reload()
    assert page.get_by_role("button", name="Refreshing: off").is_visible()
    page.wait_for_timeout(6_000)  # longer than a part's pace: the absence of a request has no event to wait for
    assert asked == []
    page.get_by_role("button", name="Refreshing: off").click()
    page.wait_for_function("() => document.querySelector('[data-poll-status]').textContent.includes('Updated at')")
    page.wait_for_timeout(500)
    assert asked


@pytest.mark.usefixtures("_rows")
def test_a_hidden_tab_asks_for_nothing(page: Any) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/part/" in request.url else None)
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.wait_for_timeout(6_500)
    assert asked == []
    page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_function("() => performance.getEntriesByType('resource').some(each => each.name.includes('/part/'))")


@pytest.mark.usefixtures("_rows")
def test_who_is_signed_out_is_told_so(page: Any) -> None:
    page.context.clear_cookies()
    page.wait_for_function("() => document.querySelector('[data-poll-status]').textContent.includes('signed out')")
    assert page.get_by_role("button", name="Refreshing: off").is_visible()


@pytest.mark.usefixtures("_rows")
def test_run_now_runs(page: Any) -> None:
    before = clock.now()
    page.get_by_role("button", name="Run Schedule").first.click()
    page.wait_for_url("**/schedulerexecution/*/change/")
    assert SchedulerExecution.objects.filter(trigger="manual", executed_at__gte=before).count() == 1


@pytest.mark.usefixtures("_rows")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_window_needs_no_scrolling_sideways(page: Any, scheme: Any) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 420, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= 420
    assert page.get_by_role("link", name="Pause").first.is_visible()
