"""Pages work without a mouse: Tab reaches every link and control, and the focus is visible."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from tests.admin.chromium import Visit
from tests.admin.rows import Rows, one_of_each
from tests.factories import UserFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# This script numbers all links and controls, and stores how they look without the focus. It leaves out radio buttons,
# because Tab reaches only one radio button of a group. It also leaves out controls in closed sections, because these
# controls are not visible.
NUMBERED = """() => {
    window.look = element => {
        const style = getComputedStyle(element);
        return [style.outline, style.boxShadow, style.border, style.backgroundColor, style.textDecoration].join("|");
    };
    const found = [...document.querySelectorAll("#content a[href], #content button, #content input, #content select, "
        + "#content textarea, #content summary")].filter(element => element.checkVisibility({visibilityProperty: true})
        && !element.disabled && element.tabIndex >= 0 && element.type !== "radio"
        && element.getBoundingClientRect().width > 1);
    window.looks = found.map(element => window.look(element));
    found.forEach((element, place) => element.dataset.number = place);
    return found.map(element => element.outerHTML.slice(0, 150));
}"""
# This script blocks the updates of a page. An update could replace an element that the test has numbered.
NO_UPDATES = "window.fetch = () => new Promise(() => {})"
FOCUSED = """() => {
    const here = document.activeElement, number = here.dataset.number;
    const seen = number === undefined || window.look(here) !== window.looks[number];
    return [number === undefined ? -1 : Number(number), seen, here === document.body];
}"""


def press_tab_through(page: Page) -> None:
    """Press Tab through the whole page. Assert that Tab reaches every control, and that the focus is always visible."""
    offered = page.evaluate(NUMBERED)
    assert offered
    page.evaluate("document.activeElement.blur()")
    reached, seen = set(), set()
    for _press in range(len(offered) * 2 + 150):
        page.keyboard.press("Tab")
        number, is_seen, over = page.evaluate(FOCUSED)
        if over and reached:
            break
        reached.add(number)
        if is_seen:  # a date input has several Tab stops, and one visible focus is enough
            seen.add(number)
    missed = [html for number, html in enumerate(offered) if number not in reached]
    assert missed == []
    assert [offered[number] for number in reached - seen] == []


@pytest.fixture
def rows(settings: Any, tmp_path: Path, transactional_db: None) -> Rows:
    """Rows of each model that has pages, and the superuser ada."""
    settings.MEDIA_ROOT = tmp_path
    UserFactory(username="ada", superuser=True)
    return one_of_each()


@pytest.mark.parametrize("width", [1280, 420])
def test_tab_reaches_every_control(visit: Visit, rows: Rows, width: int) -> None:
    running, *_others, failed = rows["schedulerexecution"]
    (_on, off), (failure,) = rows["scheduler"], rows["failedexecution"]
    page = visit("ada", width=width)
    page.add_init_script(NO_UPDATES)
    for name, row in [
        ("dashboard_changelist", None), ("scheduler_changelist", None), ("scheduler_change", off),
        ("scheduler_run", off), ("scheduler_delete", off), ("schedulerexecution_changelist", None),
        ("schedulerexecution_change", running), ("schedulerexecution_change", failed),
        ("failedexecution_changelist", None), ("failedexecution_edit", failure), ("process_changelist", None),
    ]:  # fmt: skip
        page.goto(reverse(f"admin:scheduling_{name}", args=[row.pk] if row is not None else []))
        press_tab_through(page)
    page.goto(reverse("admin:scheduling_failedexecution_changelist") + "?group=error")
    press_tab_through(page)


def test_the_first_tab_leads_past_the_navigation(visit: Visit, rows: Rows) -> None:
    page = visit("ada")
    page.goto(reverse("admin:scheduling_dashboard_changelist"))
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to main content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('#content').contains(document.activeElement)")


def test_a_schedule_is_run_without_a_mouse(visit: Visit, rows: Rows) -> None:
    page = visit("ada")
    page.goto(reverse("admin:scheduling_scheduler_change", args=[rows["scheduler"][0].pk]))
    page.get_by_role("link", name="Run now").focus()
    page.keyboard.press("Enter")
    button = page.get_by_role("button", name="Run now", exact=True)
    expect(button).to_be_visible()
    for _press in range(60):
        page.keyboard.press("Tab")
        if button.evaluate("element => element === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.locator(".sch-head .sch-chip")).to_have_text("queued")
