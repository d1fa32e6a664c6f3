"""Keyboard shortcuts: they find, move and open, never while a user types, and users can switch them off."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from django.urls import reverse
from playwright.sync_api import Page, expect

from tests.admin.chromium import Visit
from tests.admin.conftest import OPERATE, VIEW, logged_in
from tests.factories import FailedExecutionFactory, SchedulerFactory, UserFactory

INBOX = reverse("admin:scheduling_failedexecution_changelist")
EACH = f"{INBOX}?group=each"
HELP = reverse("admin:scheduling_schedulerexecution_keys")

browser = pytest.mark.browser
transactional = pytest.mark.django_db(transaction=True)


@pytest.fixture
def inbox(visit: Visit) -> Page:
    """The failed inbox with three failures, opened by an operator."""
    UserFactory(username="olga", permissions=[*VIEW, *OPERATE, "scheduling.view_dashboard"])
    FailedExecutionFactory.create_batch(3, scheduler=SchedulerFactory())
    page = visit("olga")
    page.goto(EACH)
    return page


def press(page: Page, *keys: str) -> None:
    """Press keys one after another."""
    for key in keys:
        page.keyboard.press(key)


@browser
@transactional
def test_a_slash_searches_and_a_field_takes_every_key(inbox: Page) -> None:
    box = inbox.get_by_role("searchbox", name="Search")
    press(inbox, "/")
    expect(box).to_be_focused()
    inbox.keyboard.type("j/k r? gf")
    expect(box).to_have_value("j/k r? gf")
    assert inbox.url.endswith("?group=each")
    expect(inbox.get_by_role("dialog")).to_have_count(0)


@browser
@transactional
def test_j_and_k_move_the_focus_and_r_republishes(inbox: Page) -> None:
    errors = inbox.locator("#result_list a.sch-error")
    press(inbox, "j")
    expect(errors.nth(0)).to_be_focused()
    press(inbox, "j", "j", "j")
    expect(errors.nth(2)).to_be_focused()
    press(inbox, "k")
    expect(errors.nth(1)).to_be_focused()
    # Tab goes on from the row. The shortcuts hold no focus.
    press(inbox, "Tab")
    assert inbox.evaluate(
        "document.activeElement.closest('tr') === document.querySelectorAll('#result_list tbody tr')[1]"
    )
    # A key together with Control belongs to the browser or to a screen reader.
    inbox.keyboard.press("Control+j")
    assert inbox.evaluate(
        "document.activeElement.closest('tr') === document.querySelectorAll('#result_list tbody tr')[1]"
    )
    address = inbox.locator("#result_list tbody tr").nth(1).get_by_role("link", name="Republish").get_attribute("href")
    press(inbox, "r")
    inbox.wait_for_url(re.compile("/republish/"))
    assert address is not None
    assert inbox.url.endswith(address)
    expect(inbox.get_by_role("button", name="Republish")).to_be_visible()


@browser
@transactional
def test_r_republishes_an_execution_or_a_group(inbox: Page) -> None:
    inbox.locator("#result_list a.sch-error").first.click()
    expect(inbox.get_by_role("link", name="Edit and republish")).to_be_visible()
    inbox.wait_for_load_state()
    press(inbox, "r")
    inbox.wait_for_url(re.compile("/republish/"))
    inbox.goto(f"{INBOX}?group=error")
    press(inbox, "r")  # no row has the focus
    press(inbox, "j")
    expect(inbox.locator(".sch-groups a.sch-error")).to_be_focused()
    press(inbox, "r")
    expect(inbox.get_by_role("heading", name="Republish failed executions")).to_be_visible()
    expect(inbox.get_by_label("Canary: run one first")).to_be_visible()


@browser
@transactional
def test_g_opens_the_main_pages(inbox: Page) -> None:
    for key, path in (("d", "dashboard"), ("e", "schedulerexecution"), ("s", "scheduler"), ("f", "failedexecution")):
        press(inbox, "g", key)
        inbox.wait_for_url(re.compile(f"/scheduling/{path}/$"))
    press(inbox, "g", "x", "d")  # another key ends the shortcut
    assert inbox.url.endswith("/failedexecution/")
    press(inbox, "f")
    assert inbox.url.endswith("/failedexecution/")


@browser
@transactional
def test_the_help_lists_the_shortcuts_and_switches_them_off(inbox: Page) -> None:
    dialog = inbox.get_by_role("dialog", name="Keyboard shortcuts")
    inbox.keyboard.press("?")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_role("link")).to_have_text(["Dashboard", "Failed inbox", "Executions", "Schedules"])
    press(inbox, "j")  # a dialog is open
    expect(inbox.locator("#result_list a.sch-error").first).not_to_be_focused()
    inbox.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    # The button of the help needs no shortcut.
    inbox.get_by_role("button", name="Keyboard shortcuts").click()
    dialog.get_by_role("checkbox", name="Shortcuts are on in this browser").uncheck()
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_be_hidden()
    for page_load in range(2):
        press(inbox, "/", "?", "j")
        expect(dialog).to_be_hidden()
        assert inbox.evaluate("document.querySelector('#result_list').contains(document.activeElement)") is False
        assert inbox.evaluate("document.activeElement.id") != "searchbar"
        if not page_load:
            inbox.reload()
    inbox.get_by_role("button", name="Keyboard shortcuts").click()
    expect(dialog.get_by_role("checkbox")).not_to_be_checked()
    dialog.get_by_role("checkbox").check()
    inbox.keyboard.press("Escape")
    press(inbox, "/")
    expect(inbox.get_by_role("searchbox", name="Search")).to_be_focused()


@browser
@transactional
def test_escape_closes_a_menu_and_keeps_the_focus(inbox: Page) -> None:
    menu = inbox.locator(".sch-filters summary", has_text="Age")
    menu.click()
    link = inbox.get_by_role("link", name="last hour")
    link.focus()
    inbox.keyboard.press("Escape")
    expect(link).to_be_hidden()
    expect(menu).to_be_focused()
    menu.click()
    inbox.get_by_role("heading", name="Failed inbox").click()
    expect(link).to_be_hidden()


def test_the_help_lists_only_pages_that_the_user_may_open(viewer: Client, no_rights: Client) -> None:
    text = viewer.get(HELP).content.decode()
    assert "Executions</a>" in text
    assert "Dashboard</a>" not in text
    assert no_rights.get(HELP).status_code == 403
    only_workers = logged_in(UserFactory(permissions=["scheduling.view_worker"]))
    response = only_workers.get(HELP)
    assert response.headers["X-Part"] == "keys"
    assert "<a href" not in response.content.decode()
    assert Client().get(HELP).status_code == 302


def test_a_page_names_the_address_of_the_help(viewer: Client) -> None:
    assert f'data-help="{HELP}"' in viewer.get(INBOX).content.decode()
