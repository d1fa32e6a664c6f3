"""The dashboard works in a real browser under a Content-Security-Policy that forbids inline scripts and styles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.utils import timezone as clock

from scheduling.admin.dashboard import heatmap
from scheduling.models import SchedulerExecution
from tests.admin.conftest import log_in
from tests.admin.dashboard.conftest import PAGE
from tests.factories import ProcessFactory, SchedulerExecutionFactory, SchedulerFactory, UserFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def said() -> list[str]:
    """The console messages and uncaught errors of the page. The fixture `page` checks that there are none."""
    return []


@pytest.fixture
def page(browser: Any, live_server: Any, said: list[str]) -> Iterator[Any]:
    """The dashboard of a superuser, in a new browser context."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    log_in(context, UserFactory(username="operator", superuser=True), live_server.url)

    opened = context.new_page()
    opened.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.goto(live_server.url + PAGE)
    yield opened
    # Closing the window aborts open requests, and these errors do not count. So the messages are copied first.
    heard = list(said)
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
def test_every_part_is_shown(page: Any) -> None:
    for name in ("Needs attention", "Running", "Last 7 days", "Next 60 minutes", "Schedules"):
        assert page.get_by_role("heading", name=name, exact=True).count() == 1, name
    assert page.get_by_role("link", name="Failed").first.is_visible()
    assert page.locator("svg[role=img], svg[role=group]").evaluate_all(
        "all => all.every(element => element.getAttribute('aria-label') && element.querySelector('title'))"
    )


@pytest.mark.usefixtures("_rows")
def test_parts_are_refreshed_and_a_screen_reader_hears_the_counts(page: Any) -> None:
    wait_for_tile(page, 3, "4")
    SchedulerExecution.objects.filter(state="failed").update(state="discarded")
    wait_for_tile(page, 3, "0")
    page.wait_for_function("() => document.querySelector('[data-poll-live]').textContent.includes('0 failed')")


@pytest.mark.usefixtures("_rows")
def test_a_refresh_keeps_the_focus(page: Any) -> None:
    tile = "document.querySelectorAll('.dash-tile')[3]"
    page.evaluate(f"{tile}.focus(); {tile}.dataset.old = 'yes'")
    page.wait_for_function(f"() => !{tile}.dataset.old")
    assert page.evaluate(f"document.activeElement === {tile}")


@pytest.mark.usefixtures("_rows")
def test_refreshing_stays_off_after_a_reload(page: Any) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/part/tiles/" in request.url else None)
    page.get_by_role("button", name="Auto-refresh: on").click()
    page.reload()
    assert page.get_by_role("button", name="Auto-refresh: off").is_visible()
    page.wait_for_timeout(6_000)  # milliseconds, longer than a refresh interval
    assert asked == []
    page.get_by_role("button", name="Auto-refresh: off").click()
    page.wait_for_function("() => document.querySelector('[data-poll-status]').textContent.includes('Updated at')")
    page.wait_for_timeout(500)
    assert asked


@pytest.mark.usefixtures("_rows")
def test_the_heat_map_comes_after_the_page_even_if_refreshing_is_off(page: Any) -> None:
    picture = page.locator("svg.dash-heat")
    picture.wait_for()
    page.get_by_role("button", name="Auto-refresh: on").click()
    heatmap.forget()
    with page.expect_response("**/part/heatmap/"):
        page.reload()
    picture.wait_for()
    assert page.get_by_role("button", name="Auto-refresh: off").is_visible()


@pytest.mark.usefixtures("_rows")
def test_a_hidden_tab_sends_no_requests(page: Any) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/part/tiles/" in request.url else None)
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.wait_for_timeout(6_500)
    assert asked == []
    page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_function("() => performance.getEntriesByType('resource').some(load => load.name.includes('/part/'))")


@pytest.mark.usefixtures("_rows")
def test_a_signed_out_user_sees_a_message(page: Any) -> None:
    page.context.clear_cookies()
    page.wait_for_function("() => document.querySelector('[data-poll-status]').textContent.includes('signed out')")
    assert page.get_by_role("button", name="Auto-refresh: off").is_visible()


@pytest.mark.usefixtures("_rows")
def test_the_run_button_creates_an_execution(page: Any) -> None:
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
