"""An operator works in a browser without JavaScript: each task needs only links, forms and buttons."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from scheduling.models import Scheduler, SchedulerExecution, Worker
from tests.admin.chromium import Visit, overflow
from tests.admin.layout_faults import CUT_TEXTS
from tests.factories import (
    AttemptFactory,
    FailedExecutionFactory,
    ProcessFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

TRACEBACK = 'Traceback (most recent call last):\n  File "orders.py", line 87, in import_orders\nValueError: no total\n'


@pytest.fixture
def orders(transactional_db: None) -> Scheduler:
    """A schedule with a success and a failure, and the superuser ada."""
    UserFactory(username="ada", superuser=True)
    ProcessFactory(producer=True)
    row: Scheduler = SchedulerFactory(description="Import orders", handler="tests.typed", params={"since_days": 3})
    SchedulerExecutionFactory(scheduler=row, succeeded=True)
    failed = FailedExecutionFactory(scheduler=row, error_message="no total", attempt=1)
    AttemptFactory(execution=failed, number=1, error_message="no total", traceback=TRACEBACK)
    return row


def test_a_failure_is_found_read_and_republished(visit: Visit, orders: Scheduler) -> None:
    page = visit("ada", script=False)
    expect(page).to_have_url(re.compile(reverse("admin:scheduling_dashboard_changelist")))
    expect(page.locator(".dash-attention")).to_contain_text("ValueError")
    page.locator(".dash-tile", has_text="Failed").click()
    page.locator("#result_list .field-error a").click()
    expect(page.locator("#error")).to_contain_text('File "orders.py", line 87, in import_orders')
    page.locator(".sch-tools").get_by_role("link", name=re.compile("^Republish")).click()
    page.get_by_role("button", name="Republish").click()
    expect(page.locator(".sch-head .sch-chip")).to_have_text("queued")
    assert not SchedulerExecution.objects.filter(state="failed").exists()


def test_a_failure_is_republished_and_another_discarded_from_the_inbox(visit: Visit, orders: Scheduler) -> None:
    FailedExecutionFactory(scheduler=orders, error_class="KeyError", error_message="'currency'")
    page = visit("ada", script=False)
    page.goto(reverse("admin:scheduling_failedexecution_changelist") + "?group=each")
    row = page.get_by_role("row").filter(has_text="no total")
    row.get_by_role("link", name="Republish").click()
    page.get_by_role("button", name="Republish").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    row = page.get_by_role("row").filter(has_text="KeyError")
    row.locator(".sch-menu > summary").click()
    row.get_by_role("link", name="Discard").click()
    page.get_by_label("Reason").fill("known")
    page.get_by_role("button", name="Discard").click()
    expect(page.get_by_text("Inbox empty.")).to_be_visible()


def test_the_dashboard_shows_the_heat_map(visit: Visit, orders: Scheduler) -> None:
    page = visit("ada", script=False)
    page.get_by_role("link", name="Show the heat map").click()
    expect(page.locator("svg.dash-heat a").first).to_be_visible()
    expect(page.get_by_role("link", name="Show the heat map")).to_have_count(0)


def test_several_failures_are_republished_by_an_action(visit: Visit, orders: Scheduler) -> None:
    FailedExecutionFactory(scheduler=orders, error_class="KeyError", error_message="'currency'")
    page = visit("ada", script=False)
    page.goto(reverse("admin:scheduling_failedexecution_changelist") + "?group=each")
    for box in page.locator("#result_list tbody input[type=checkbox]").all():
        box.check()
    page.get_by_label("Action:").select_option("republish_selected")
    page.get_by_role("button", name="Go").click()
    page.get_by_role("button", name="Republish").click()
    expect(page.locator(".messagelist .success")).to_contain_text("2 were republished.")


def test_a_schedule_is_run_paused_and_resumed(visit: Visit, orders: Scheduler) -> None:
    page = visit("ada", script=False)
    page.get_by_role("link", name="Schedules").first.click()
    page.get_by_role("link", name="Import orders").click()
    page.get_by_role("link", name="Run now").click()
    page.get_by_label("since_days").fill("7")
    page.get_by_role("button", name="Run now").click()
    expect(page.locator(".sch-head .sch-chip")).to_have_text("queued")
    assert SchedulerExecution.objects.get(state="queued").params == {"since_days": 7}

    page.goto(reverse("admin:scheduling_scheduler_change", args=[orders.pk]))
    page.get_by_role("link", name="Pause", exact=True).click()
    page.get_by_label("Reason").fill("storage full")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator(".sch-head")).to_contain_text("storage full")
    orders.refresh_from_db()
    assert not orders.status
    page.get_by_role("button", name="Resume").click()
    if page.locator("h1", has_text="Resume").count():
        page.get_by_role("button", name="Resume").click()
    expect(page.locator(".messagelist .success")).to_contain_text("1 schedule was resumed.")
    orders.refresh_from_db()
    assert orders.status


def test_executions_are_filtered_and_searched(visit: Visit, orders: Scheduler) -> None:
    SchedulerExecutionFactory.create_batch(3, scheduler__description="Archive log files", succeeded=True)
    page = visit("ada", script=False, width=390)
    page.locator(".breadcrumbs").get_by_role("link", name="Scheduling").click()  # a phone shows no sidebar
    page.locator("#content").get_by_role("link", name="Executions", exact=True).click()
    page.locator(".sch-bar-button > summary").click()
    page.locator(".sch-filters summary", has_text="State").click()
    page.get_by_role("link", name="succeeded", exact=True).click()
    expect(page.locator("#result_list tbody tr")).to_have_count(4)
    page.get_by_role("searchbox", name="Search").fill('schedule:"Import orders"')
    page.get_by_role("button", name="Search").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    page.get_by_role("link", name="Remove the filter State: succeeded").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(2)


def test_a_schedule_is_added(visit: Visit, orders: Scheduler) -> None:
    page = visit("ada", script=False)
    page.goto(reverse("admin:scheduling_scheduler_changelist"))
    with page.expect_navigation():  # the page focuses its first field when it is loaded
        page.get_by_role("link", name="Add schedule").click()
    page.get_by_label("Description:").fill("Sync tokens")
    page.get_by_label("Worker:").select_option(str(Worker.objects.get(name="tests.typed").pk))
    page.get_by_label("Schedule:", exact=True).fill("61 8 * * 1-5")
    page.get_by_label("Time zone:").fill("Europe/Madrid")
    with page.expect_navigation():
        page.get_by_role("button", name="Save", exact=True).first.click()
    expect(page.locator(".field-schedule .errorlist")).to_have_text("Minute: '61' is outside 0-59.")
    page.get_by_label("Schedule:", exact=True).fill("0 8 * * 1-5")
    page.locator("textarea[name=params]").fill('{"since_days": 9}')
    page.get_by_role("button", name="Save", exact=True).first.click()
    expect(page.locator(".messagelist .success")).to_contain_text("was added successfully")
    added = Scheduler.objects.get(description="Sync tokens")
    assert (added.params, added.timezone) == ({"since_days": 9}, "Europe/Madrid")


@pytest.mark.parametrize("width", [1440, 1024, 390])
def test_no_text_is_cut_without_the_scripts(visit: Visit, orders: Scheduler, width: int) -> None:
    page, wrong = visit("ada", script=False, width=width), []
    failed = SchedulerExecution.objects.get(state="failed")
    for name, *key in [
        ("dashboard_changelist",), ("scheduler_changelist",), ("scheduler_change", orders.pk), ("scheduler_add",),
        ("schedulerexecution_changelist",), ("schedulerexecution_change", failed.pk), ("failedexecution_changelist",),
    ]:  # fmt: skip
        page.goto(reverse(f"admin:scheduling_{name}", args=key))
        wrong += [f"{name}: {fault}" for fault in page.evaluate(CUT_TEXTS)]
        if overflow(page) > 0:
            wrong.append(f"{name}: {overflow(page)} pixels wider than the window")
    assert not wrong, "\n".join(wrong)
