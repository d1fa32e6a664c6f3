"""Browser tests: the page of an execution shows new output without a reload.

While a user reads earlier lines, new output does not scroll the log.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone as clock
from playwright.sync_api import Page, expect

from scheduling.models import Output, SchedulerExecution
from tests.admin.chromium import Visit, overflow
from tests.admin.conftest import OPERATE, VIEW
from tests.admin.pages import HOSTILE, page_of
from tests.factories import (
    AttemptFactory,
    ManualExecutionFactory,
    OutputFactory,
    ProcessFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
    WorkerFactory,
)
from tests.support import Commands, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

AT = "2026-03-10T12:00:00.000Z"


@pytest.fixture
def open_page(visit: Visit) -> Visit:
    """Create the operator olga and return the fixture `visit`."""
    UserFactory(username="olga", permissions=[*VIEW, *OPERATE])
    return visit


def store_output(row: SchedulerExecution, *texts: str, attempt: int = 1, level: str = "OUT") -> None:
    """Store the texts as lines of the attempt's output. Each line has a time and a level, as a consumer stores it."""
    sequence = Output.objects.filter(execution=row, attempt=attempt).count()
    text = "".join(f"{AT} {level} {text_line}\n" for text_line in texts)
    OutputFactory(execution=row, attempt=attempt, sequence=sequence, text=text)


def picture(page: Page, name: str) -> None:
    """Save a screenshot if the environment variable SCREENSHOTS names a directory."""
    if directory := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{directory}/{name}.png", full_page=True)


def test_page_follows_the_output_of_a_run_to_its_end(open_page: Visit) -> None:
    row = SchedulerExecutionFactory(running=True)
    page = open_page("olga")
    page.goto(page_of(row))
    expect(page.locator("[data-follow-empty]")).to_have_text("No output yet.")
    page.evaluate("window.unreloaded = true")
    store_output(row, "first words", HOSTILE)
    expect(page.locator(".sch-log")).to_contain_text("first words")
    expect(page.locator(".sch-log")).to_contain_text("<script>alert(1)</script>\\x1b[31m\\u202e")
    expect(page.locator("[data-follow-empty]")).to_have_count(0)
    expect(page.locator("[data-follow-status]")).to_have_text("New lines appear here.")
    SchedulerExecution.objects.filter(pk=row.pk).update(progress="3/10")
    expect(page.locator(".sch-progress")).to_have_text("Progress: 3/10")

    # The second attempt adds a heading to the output and an option to the list of attempts.
    AttemptFactory(execution=row, number=1, error_class="OSError", traceback="Traceback: it broke" + 20 * "\n…")
    SchedulerExecution.objects.filter(pk=row.pk).update(attempt=2)
    store_output(row, "once more", attempt=2)
    expect(page.locator(".sch-log .sch-group")).to_have_text(["Attempt 1", "Attempt 2"])
    expect(page.locator("select[name=attempt] option")).to_have_text(["all", "1", "2"])
    page.locator("#traceback summary").click()

    store_output(row, "last words", attempt=2)
    AttemptFactory(execution=row, number=2, outcome="succeeded")
    SchedulerExecution.objects.filter(pk=row.pk).update(state="succeeded", finished_at=clock.now(), wake_at=None)
    expect(page.locator(".sch-log")).to_contain_text("last words")
    expect(page.locator(".sch-head .sch-chip")).to_have_text("succeeded")
    expect(page.locator("[data-follow-status]")).to_have_text("Finished.")
    expect(page.locator("[data-follow-live]")).to_have_text("succeeded")
    expect(page.locator("[data-follow-url]")).to_have_attribute("data-over", "true")
    expect(page.locator("#traceback")).to_have_attribute("open", "")  # the user has opened the traceback above
    assert page.locator(".sch-log .sch-line").count() == 4
    assert page.evaluate("window.unreloaded") is True
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(2_500)  # in milliseconds; the page must not send a request in this time
    assert asked == []


def test_new_output_scrolls_the_log_only_while_following(open_page: Visit) -> None:
    row = SchedulerExecutionFactory(running=True)
    store_output(row, *(f"line {number}" for number in range(300)))
    page = open_page("olga")
    page.goto(page_of(row))
    log, toggle = page.locator(".sch-log"), page.locator("[data-follow-toggle]")
    expect(toggle).to_have_attribute("aria-pressed", "true")
    gap = "(box) => Math.round(box.scrollHeight - box.scrollTop - box.clientHeight)"
    assert log.evaluate(gap) <= 1
    store_output(row, *(f"more {number}" for number in range(50)))
    expect(log).to_contain_text("more 49")
    assert log.evaluate(gap) <= 1
    log.evaluate("(box) => { box.scrollTop = 100; }")
    expect(toggle).to_have_attribute("aria-pressed", "false")
    store_output(row, "while you read")
    expect(log).to_contain_text("while you read")
    assert log.evaluate("(box) => box.scrollTop") == 100
    toggle.click()
    expect(toggle).to_have_attribute("aria-pressed", "true")
    assert log.evaluate(gap) <= 1
    toggle.focus()
    page.keyboard.press("Space")
    expect(toggle).to_have_attribute("aria-pressed", "false")


def test_level_and_search_also_filter_new_output(open_page: Visit) -> None:
    row = SchedulerExecutionFactory(running=True)
    store_output(row, "quiet words")
    store_output(row, "a warning", level="WARN")
    page = open_page("olga")
    page.goto(page_of(row))
    page.get_by_label("Level").select_option("warn")
    page.get_by_label("Search").fill("Warn")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".sch-log mark")).to_have_text(["warn"])
    store_output(row, "an info of a warning", level="INFO")
    store_output(row, "another warning", level="ERROR")
    expect(page.locator(".sch-log mark")).to_have_text(["warn", "warn"])
    expect(page.locator(".sch-log")).not_to_contain_text("quiet words")
    expect(page.locator(".sch-log")).not_to_contain_text("an info")
    picture(page, "filtered")
    page.get_by_role("link", name="Show all").click()
    expect(page.locator(".sch-log")).to_contain_text("quiet words")


def test_hidden_tab_sends_no_request_and_catches_up_when_shown(open_page: Visit) -> None:
    row = SchedulerExecutionFactory(running=True)
    page = open_page("olga")
    page.goto(page_of(row))
    expect(page.locator("[data-follow-status]")).to_have_text("New lines appear here.")
    page.evaluate("Object.defineProperty(document, 'hidden', {configurable: true, get: () => window.away})")
    page.evaluate("window.away = true")
    page.wait_for_load_state("networkidle")  # after this line, all earlier requests are answered
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    store_output(row, "while no page looked")
    page.wait_for_timeout(2_500)  # in milliseconds; the page must not send a request in this time
    assert asked == []
    page.evaluate("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator(".sch-log")).to_contain_text("while no page looked")


def test_an_ended_session_shows_a_message_instead_of_the_login_page(open_page: Visit) -> None:
    row = SchedulerExecutionFactory(running=True)
    page = open_page("olga")
    page.goto(page_of(row))
    expect(page.locator("[data-follow-status]")).to_have_text("New lines appear here.")
    page.context.clear_cookies()
    expect(page.locator("[data-follow-status]")).to_have_text("You are logged out: load the page again.")
    assert page.get_by_label("Password").count() == 0


def test_without_scripts_the_page_says_how_to_see_more(open_page: Visit, browser, site: str) -> None:  # type: ignore[no-untyped-def]
    row = SchedulerExecutionFactory(running=True)
    store_output(row, "first words")
    cookies = open_page("olga").context.cookies()
    context = browser.new_context(base_url=site, java_script_enabled=False)
    context.add_cookies(cookies)
    page = context.new_page()
    page.goto(page_of(row))
    expect(page.locator(".sch-log")).to_contain_text("first words")
    expect(page.get_by_text("load the page again to see more")).to_be_visible()
    expect(page.locator("[data-follow-toggle]")).to_be_hidden()
    page.get_by_label("Search").fill("nothing like it")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.get_by_text("No line matches.")).to_be_visible()
    context.close()


@pytest.fixture
def commands(transactional_db: None, tmp_path: Path) -> Iterator[Commands]:
    """An object that starts `manage.py` commands as real processes. The processes use the test database."""
    made = Commands(tmp_path)
    yield made
    made.end()


@pytest.mark.processes
def test_a_real_run_is_followed_and_cancelled_from_its_page(open_page: Visit, commands: Commands) -> None:
    page = open_page("olga")
    commands.ready(commands.start("run_worker"))
    row = ManualExecutionFactory(scheduler__handler="tests.chatter", scheduler__params={"seconds": 300})
    page.goto(page_of(row))
    expect(page.locator(".sch-log")).to_contain_text(re.compile(r"tick \d+"))
    expect(page.locator(".sch-log")).to_contain_text(re.compile(r"tick (1\d|[2-9]\d)"))
    expect(page.locator(".sch-head .sch-chip")).to_have_text("running")
    page.get_by_role("link", name="Cancel").click()
    expect(page.get_by_text("killed after 5 s")).to_be_visible()
    page.get_by_role("button", name="Cancel the run").click()
    expect(page.locator(".sch-head .sch-chip")).to_have_text("cancelled")
    expect(page.locator(".sch-lead")).to_have_text("Cancelled by olga.")
    # A run that has ended before the page is shown is not followed, so its status stays empty.
    expect(page.locator("[data-follow-status]")).to_have_text(re.compile(r"^(Finished\.)?$"))
    wait_for(lambda: SchedulerExecution.objects.get(pk=row.pk).state == "cancelled", "cancelled")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 420])
def test_a_full_page_fits_its_window(open_page: Visit, scheme: str, width: int) -> None:
    ProcessFactory()
    worker = WorkerFactory(name="tests.mark")
    scheduler = SchedulerFactory(worker=worker, description="Invoices of the night", params={"seconds": 5})
    now = clock.now()
    row = SchedulerExecutionFactory(
        scheduler=scheduler, failed=True, attempt=3, params={"seconds": 500, "directory": "w" * 90},
        scheduled_at=now - timedelta(seconds=200), executed_at=now - timedelta(seconds=195),
    )  # fmt: skip
    SchedulerExecutionFactory.create_batch(2, scheduler=scheduler, failed=True)
    for number in (1, 2, 3):
        begun = now - timedelta(seconds=230 - 60 * number)
        AttemptFactory(
            execution=row, number=number, traceback="Traceback (most recent call last):\n  …", started_at=begun,
            finished_at=begun + timedelta(seconds=20), retry_at=begun + timedelta(seconds=60) if number < 3 else None,
        )  # fmt: skip
        store_output(row, "begins", "x" * 300, attempt=number)
        store_output(row, "slow answer", attempt=number, level="WARN")
        store_output(row, "no route to host", attempt=number, level="ERROR")
    store_output(row, "... 500 bytes (3 lines) left out here: the output is longer ...", attempt=3, level="NOTE")
    page = open_page("olga", scheme, width)
    page.goto(page_of(row))
    assert overflow(page) <= 0
    page.locator("#timeline").scroll_into_view_if_needed()
    assert overflow(page) <= 0
    picture(page, f"execution-{scheme}-{width}")
    page.goto(page_of(row, "edit_rerun"))
    assert overflow(page) <= 0
    picture(page, f"edit-rerun-{scheme}-{width}")
