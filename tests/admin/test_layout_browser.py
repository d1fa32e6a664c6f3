"""Lists begin high on the page, and no button is cut or covered at the widths of a desktop, a tablet and a phone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from tests.admin.axe import axe_faults, looks
from tests.admin.chromium import Visit, overflow
from tests.admin.inbox import fill
from tests.admin.layout_faults import CUT, FIRST_ROW, OUT_OF_REACH
from tests.admin.pages import address
from tests.admin.rows import Rows, one_of_each
from tests.factories import (
    FailedExecutionFactory,
    ReportFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
    WorkerFactory,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

SIZES = [(1440, 900), (1024, 768), (390, 844)]
HIGHEST = {1440: 400, 1024: 400, 390: 500}
"""For each width of the window: the first row of a list begins at most this many pixels below the top of the page."""


def picture(page: Page, name: str) -> None:
    """Save a screenshot if the environment variable SCREENSHOTS names a directory."""
    if directory := os.environ.get("SCREENSHOTS"):
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=f"{directory}/{name}.png")


@pytest.fixture
def long_names(transactional_db: None) -> None:
    """Rows whose names are as long as in a real project, and the superuser ada."""
    UserFactory(username="ada", superuser=True)
    worker = WorkerFactory(name="warehouse.import_orders_of_all_shops", title="Import the orders of all shops")
    for number in range(12):
        FailedExecutionFactory(
            scheduler=SchedulerFactory(
                worker=worker, description=f"Import orders of the shops in region {number}", timezone="Europe/Berlin",
                schedule="15 8,9,10 * * 1-5",
            ),
            target_name=worker.name, error_class="shop.errors.PaymentGatewayTimeout",
            error_message="The payment gateway did not answer within 30 seconds: https://gateway.example.org/v2/orders",
        )  # fmt: skip
    fill(30, error_class="KeyError")
    SchedulerExecutionFactory.create_batch(3, running=True, scheduler=SchedulerFactory(worker=worker))
    SchedulerExecutionFactory(succeeded=True, requested_by="a.long.user.name", trigger="manual")
    ReportFactory()


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_first_row_is_on_the_first_screen(visit: Visit, long_names: None, width: int, height: int) -> None:
    page = visit("ada", width=width)
    page.set_viewport_size({"width": width, "height": height})
    places = {}
    for name, path in {
        "inbox": address("failedexecution") + "?group=each",
        "groups": address("failedexecution") + "?group=error",
        "filtered": address("failedexecution") + "?group=each&type=worker&age=24h",
        "executions": address("schedulerexecution"),
        "schedules": address("scheduler"),
        "workers": address("worker"),
        "reports": reverse("admin:cron_reports_report_changelist"),
    }.items():
        page.goto(path)
        places[name] = page.evaluate(FIRST_ROW)
        picture(page, f"{name}-{width}")
    if os.environ.get("SCREENSHOTS"):
        print(width, {name: round(place) for name, place in places.items()})  # noqa: T201 - for the one who measures
    assert {name: place for name, place in places.items() if place > HIGHEST[width]} == {}


def test_no_button_is_cut_or_covered(visit: Visit, long_names: None, settings: Any, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path
    rows: Rows = one_of_each()
    running, *_others, failed = rows["schedulerexecution"]
    page = visit("ada")
    wrong: list[str] = []
    for path in [
        address("dashboard"), address("scheduler"), address("schedulerexecution"),
        address("failedexecution") + "?group=each", address("failedexecution") + "?group=error",
        address("process"), address("worker"), address("replay"),
        address("reminder"), address("reminder", "change", rows["reminder"][0].pk), address("channel"),
        address("channel", "add"), address("channel", "change", rows["channel"][0].pk),
        address("calendar"), address("calendar", "add"), address("calendar", "change", rows["calendar"][0].pk),
        address("scheduler", "change", rows["scheduler"][0].pk),
        address("scheduler", "add"), address("scheduler", "run", rows["scheduler"][0].pk),
        address("schedulerexecution", "change", running.pk), address("schedulerexecution", "change", failed.pk),
        address("failedexecution", "edit", failed.pk), address("failedexecution", "republish", failed.pk),
        address("process", "change", rows["process"][0].pk), address("worker", "change", rows["worker"][0].pk),
        address("replay", "change", rows["replay"][0].pk), address("scheduler", "history", rows["scheduler"][0].pk),
    ]:  # fmt: skip
        page.goto(path)
        for width, height in (*SIZES, (1280, 800)):
            page.set_viewport_size({"width": width, "height": height})
            if overflow(page) > 0:
                wrong.append(f"{path} {width}: {overflow(page)} pixels wider than the window")
            found = [*page.evaluate(OUT_OF_REACH), *page.evaluate(CUT)]
            wrong += [f"{path} {width}: {fault}"[:300] for fault in found]
            picture(page, f"{path.strip('/').replace('/', '-')}-{width}")
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize(("width", "height"), SIZES)
def test_every_menu_opens_inside_of_the_window(
    visit: Visit, long_names: None, width: int, height: int, script: bool
) -> None:
    page = visit("ada", width=width, script=script)
    page.set_viewport_size({"width": width, "height": height})
    for path in (address("failedexecution") + "?group=each&age=24h", address("schedulerexecution"), address("process")):
        page.goto(path)
        button = page.locator(".sch-bar-button > summary")
        if width < 768:
            hidden = page.locator(".sch-filters > li:not(.sch-chosen-filter)").first
            expect(hidden).to_be_hidden()
            button.click()
            expect(hidden).to_be_visible()
        else:
            expect(button).to_be_hidden()
        menus = page.locator(".sch-filters details")
        for number in range(menus.count()):
            menus.nth(number).locator("> summary").click()
            panel = menus.nth(number).locator(".sch-filter-panel")
            expect(panel).to_be_visible()
            box = panel.bounding_box()
            assert box is not None
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
            picture(page, f"menu-{path.split('/')[3]}-{number}-{width}")
        page.locator("#result_list .sch-menu > summary, .sch-filters summary").last.click()
        assert overflow(page) <= 0
    # The menu of a row
    page.goto(address("failedexecution") + "?group=each")
    page.locator("#result_list tbody .sch-menu > summary").first.click()
    box = page.locator("#result_list tbody .sch-menu > ul").first.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    picture(page, f"row-menu-{width}")


def test_a_filter_is_chosen_and_removed(visit: Visit, long_names: None) -> None:
    page = visit("ada", script=False)
    page.goto(address("schedulerexecution"))
    page.locator("summary", has_text="State").click()
    page.get_by_role("link", name="running", exact=True).click()
    expect(page.locator("#result_list tbody tr")).to_have_count(3)
    expect(page.locator("summary", has_text="State: running")).to_be_visible()
    page.get_by_role("searchbox", name="Search").fill("import the orders")
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(3)
    page.get_by_role("link", name="Remove the filter State: running").click()
    expect(page.get_by_role("searchbox", name="Search")).to_have_value("import the orders")
    expect(page.locator("#result_list tbody tr")).to_have_count(15)


def test_the_sidebar_of_a_narrow_window_lies_over_the_page(visit: Visit, long_names: None) -> None:
    page = visit("ada", width=1024)
    page.goto(address("scheduler"))
    sidebar, toggle = page.locator("#nav-sidebar"), page.get_by_role("button", name="Toggle navigation")
    expect(sidebar).to_be_hidden()
    wide = page.locator("#content").bounding_box()
    toggle.click()
    expect(sidebar).to_be_in_viewport()
    assert page.locator("#content").bounding_box()["width"] == wide["width"]
    picture(page, "sidebar-1024")
    toggle.click()
    expect(sidebar).to_be_hidden()
    page.set_viewport_size({"width": 1440, "height": 900})
    expect(sidebar).to_be_visible()
    toggle.click()
    expect(sidebar).to_be_hidden()


def test_open_menus_and_the_help_have_no_accessibility_faults(visit: Visit, long_names: None) -> None:
    page = visit("ada", strict=False)
    wrong: list[str] = []
    for model in ("schedulerexecution", "failedexecution"):
        page.goto(address(model) + "?type=worker&q=x:1")
        for scheme, width, rules in looks(page):
            page.evaluate("document.querySelector('.sch-bar-button').open = true")
            menus = page.locator(".sch-filters details")
            for number in range(menus.count()):
                menus.nth(number).evaluate("menu => { menu.open = true; }")
                wrong += axe_faults(page, f"scheduling_{model}_changelist", rules)
            page.get_by_role("button", name="Keyboard shortcuts").click()
            expect(page.get_by_role("dialog")).to_be_visible()
            wrong += axe_faults(page, f"scheduling_{model}_changelist", rules)
            picture(page, f"help-{scheme}-{width}")
            page.keyboard.press("Escape")
    # An open menu lies over what is below it, for as long as it is open.
    wrong = [fault for fault in wrong if "partially obscured" not in fault]
    assert not wrong, "\n".join(wrong)
