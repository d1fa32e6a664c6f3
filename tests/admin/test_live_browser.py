"""Browser tests: what a page shows turns live, and what the operator has opened or focused stays so."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse
from django.utils import timezone as clock
from playwright.sync_api import Page, expect

from scheduling.models import Process, SchedulerExecution
from tests.admin.chromium import Visit
from tests.admin.conftest import OPERATE, VIEW
from tests.admin.pages import page_of
from tests.factories import (
    AttemptFactory,
    FailedExecutionFactory,
    ProcessFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

EACH = reverse("admin:scheduling_failedexecution_changelist") + "?group=each"


@pytest.fixture
def operator_page(visit: Visit) -> Page:
    """The first page after the login of an operator."""
    UserFactory(username="olga", permissions=[*VIEW, *OPERATE, "scheduling.view_dashboard"])
    return visit("olga")


def turn(row: SchedulerExecution, state: str) -> None:
    """Change the state of an execution, as a consumer does."""
    ended = clock.now() if state in ("succeeded", "failed") else None
    SchedulerExecution.objects.filter(pk=row.pk).update(state=state, started_at=clock.now(), finished_at=ended)


def test_the_message_follows_a_republished_run_to_its_end(operator_page: Page) -> None:
    row, _other = FailedExecutionFactory.create_batch(2)
    page = operator_page
    page.goto(f"{EACH}&q={row.pk}")
    page.get_by_role("link", name=f"Republish execution {row.pk}").click()
    page.get_by_role("button", name="Republish").click()
    said = page.locator(".messagelist .success")
    expect(said).to_contain_text(f"Queued again: execution {row.pk}.")
    expect(page).to_have_url(re.compile(re.escape(f"{EACH}&q={row.pk}") + "$"))
    page.evaluate("window.unreloaded = true")
    expect(said.get_by_role("status")).to_have_text("queued")
    for state in ("running", "succeeded"):
        turn(row, state)
        expect(said.get_by_role("status")).to_have_text(state)
    assert page.evaluate("window.unreloaded")
    # The run has ended, so the page asks no more.
    expect(said.locator("[data-poll-end]")).to_have_count(1)
    said.get_by_role("link", name=f"execution {row.pk}").click()
    expect(page).to_have_url(re.compile(re.escape(page_of(row)) + "$"))


def test_the_message_on_the_dashboard_follows_the_run(operator_page: Page) -> None:
    row = FailedExecutionFactory()
    operator_page.goto(reverse("admin:scheduling_dashboard_changelist"))
    operator_page.locator(".dash-attention").get_by_role("link", name="Republish").click()
    operator_page.get_by_role("button", name="Republish").click()
    said = operator_page.locator(".messagelist .success")
    expect(said.get_by_role("status")).to_have_text("queued")
    turn(row, "running")
    expect(said.get_by_role("status")).to_have_text("running")


def test_a_part_is_replaced_only_if_it_has_changed_and_asked_for_only_until_its_end(operator_page: Page) -> None:
    row = FailedExecutionFactory()
    page = operator_page
    page.goto(reverse("admin:scheduling_dashboard_changelist"))
    page.locator(".dash-attention").get_by_role("link", name="Republish").click()
    page.get_by_role("button", name="Republish").click()
    chip = page.locator(".messagelist .success .sch-chip")
    expect(chip).to_have_text("queued")
    chip.evaluate("element => { element.dataset.old = 'yes'; }")
    for _number in range(2):
        page.wait_for_event("response", lambda response: "/chip/" in response.url)
    expect(page.locator(".messagelist .sch-chip[data-old]")).to_have_count(1)
    asked: list[str] = []
    SchedulerExecution.objects.filter(pk=row.pk).delete()
    expect(page.locator(".messagelist .success [data-poll-end]")).to_have_text("deleted")
    page.on("request", lambda request: asked.append(request.url) if "/chip/" in request.url else None)
    for _number in range(2):
        page.wait_for_event("response", lambda response: "/part/tiles/" in response.url)
    assert asked == []


def test_an_open_menu_and_its_focus_survive_a_new_state_of_the_run(operator_page: Page) -> None:
    row = SchedulerExecutionFactory(running=True)
    page = operator_page
    page.goto(page_of(row))
    menu = page.locator(".sch-tools .sch-menu")
    menu.locator("summary").click()
    expect(menu.get_by_role("link", name="History")).to_be_visible()
    turn(row, "retrying")
    expect(page.locator(".sch-head .sch-chip")).to_have_text("retrying")
    expect(menu.get_by_role("link", name="History")).to_be_visible()
    expect(menu.locator("summary")).to_be_focused()
    menu.get_by_role("link", name="History").focus()
    turn(row, "running")
    expect(page.locator(".sch-head .sch-chip")).to_have_text("running")
    expect(menu.get_by_role("link", name="History")).to_be_focused()


def test_a_focused_traceback_keeps_its_focus_and_its_place(operator_page: Page) -> None:
    row = SchedulerExecutionFactory(retrying=True)
    lines = "\n".join(f'  File "x.py", line {number}, in f' for number in range(200))
    AttemptFactory(execution=row, number=1, error_class="OSError", traceback=f"Traceback:\n{lines}")
    page = operator_page
    page.goto(page_of(row))
    whole = page.locator("#traceback")
    whole.locator("summary").click()
    text = whole.locator("pre")
    expect(text).to_be_visible()
    text.evaluate("box => { box.focus(); box.scrollTop = 50; box.dataset.old = 'yes'; }")
    assert text.evaluate("box => box.scrollTop") == 50
    expect(page.locator("#traceback pre[data-old]")).to_have_count(0)  # the part is refreshed
    expect(text).to_be_focused()
    expect(text).to_be_visible()
    assert text.evaluate("box => box.scrollTop") == 50


@pytest.mark.parametrize("by", ["mouse", "keyboard"])
def test_a_click_that_began_before_a_refresh_still_counts(operator_page: Page, by: str) -> None:
    row = SchedulerExecutionFactory(running=True)
    page = operator_page
    page.goto(page_of(row))
    menu = page.locator(".sch-tools .sch-menu")
    menu.evaluate("menu => { menu.dataset.old = 'yes'; }")
    summary = menu.locator("summary")
    summary.hover()
    summary.focus()
    page.mouse.down() if by == "mouse" else page.keyboard.down(" ")
    turn(row, "retrying")
    page.wait_for_event("response", lambda response: "retrying" in response.text())
    page.mouse.up() if by == "mouse" else page.keyboard.up(" ")
    expect(page.locator(".sch-head .sch-chip")).to_have_text("retrying")
    expect(page.locator(".sch-tools .sch-menu[data-old]")).to_have_count(0)
    expect(menu.get_by_role("link", name="History")).to_be_visible()


def test_the_row_menu_of_the_inbox_stays_open_beside_a_refresh(operator_page: Page) -> None:
    row, other = FailedExecutionFactory.create_batch(2)
    page = operator_page
    page.goto(EACH)
    page.get_by_role("link", name=f"Republish execution {other.pk}").click()
    page.get_by_role("button", name="Republish").click()
    said = page.locator(".messagelist .success").get_by_role("status")
    expect(said).to_have_text("queued")
    menu = page.locator("td.field-buttons .sch-menu")
    menu.locator("summary").click()
    menu.get_by_role("link", name="Discard").focus()
    turn(other, "running")
    expect(said).to_have_text("running")
    expect(menu.get_by_role("link", name="Discard")).to_be_focused()
    menu.get_by_role("link", name="Discard").click()
    expect(page.get_by_label("Reason")).to_be_visible()
    assert SchedulerExecution.objects.get(pk=row.pk).state == "failed"


def test_a_focused_link_stays_with_its_problem_when_another_one_appears(operator_page: Page) -> None:
    SchedulerFactory()
    producer = ProcessFactory(producer=True)
    page = operator_page
    page.goto(reverse("admin:scheduling_dashboard_changelist"))
    link = page.locator(".dash-problem", has_text="No consumer is alive").get_by_role("link", name="Show")
    link.focus()
    Process.objects.filter(pk=producer.pk).update(stopped_at=clock.now())
    expect(page.locator(".dash-problem").first).to_contain_text("No producer is alive")
    expect(link).to_be_focused()
