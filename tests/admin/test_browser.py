"""The operators' pages work in a browser under a strict Content-Security-Policy and write nothing to the console."""

from __future__ import annotations

import os
import re
import uuid
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone as clock
from playwright.sync_api import Browser, Route, expect

from scheduling.models import Replay, ReplayChunk, Scheduler, SchedulerExecution, Worker
from tests.admin.chromium import Visit, choose, overflow
from tests.admin.conftest import OPERATE, VIEW
from tests.factories import (
    AttemptFactory,
    FailedExecutionFactory,
    OutputFactory,
    ProcessFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UserFactory,
    WorkerFactory,
)

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_the_browser_reports_a_violation_of_the_policy(browser: Browser, site: str) -> None:
    """The other tests in this file need these reports to notice a violation."""
    said: list[str] = []
    context = browser.new_context(base_url=site)
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))

    def spoil(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, body=answer.text().replace("</body>", "<script>window.x = 1</script></body>"))

    page.route("**/login/**", spoil)
    page.goto("/admin/login/")
    assert page.evaluate("window.x") is None
    assert any("Content Security Policy" in text for text in said)
    context.close()


def test_from_a_new_schedule_to_an_empty_inbox(visit: Visit) -> None:
    UserFactory(username="ada", superuser=True)
    worker = Worker.objects.get(name="tests.typed")
    page = visit("ada")

    # A schedule with two mistakes is not stored, and each field shows its error.
    page.goto(reverse("admin:scheduling_scheduler_changelist"))
    page.get_by_role("link", name="Add schedule").click()
    page.get_by_label("Description:").fill("Sync tokens")
    page.get_by_label("Worker:").select_option(str(worker.pk))
    page.get_by_label("Schedule:", exact=True).fill("61 8 * * 1-5")
    page.get_by_label("Time zone:").fill("Europe/Madrid")
    page.get_by_label("since_days").fill("700")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.locator(".field-schedule .errorlist")).to_have_text("Minute: '61' is outside 0-59.")
    expect(page.locator("[data-param=since_days] .errorlist")).to_contain_text("at most 90")
    assert not Scheduler.objects.exists()

    # The corrected schedule is stored, and the page shows the next ten runs.
    page.get_by_label("Schedule:", exact=True).fill("0 8 * * 1-5")
    page.get_by_label("since_days").fill("7")
    page.get_by_role("button", name="Save and continue editing").click()
    expect(page.locator(".messagelist .success")).to_contain_text("was added successfully")
    expect(page.locator(".field-next_runs tbody tr")).to_have_count(10)
    expect(page.locator(".field-next_runs .sch-words")).to_have_text("At 08:00, Monday through Friday")
    expect(page.locator(".field-next_runs tbody tr").first).to_contain_text(" CE")
    assert Scheduler.objects.get().params == {"since_days": 7}

    # "Run now" leads to a confirmation page first.
    page.get_by_role("link", name="Overview").click()
    page.get_by_role("link", name="Run now").click()
    expect(page.locator(".sch-lead")).to_contain_text("will run once, now")
    page.get_by_role("button", name="Run now").click()
    expect(page.locator("h1")).to_contain_text(re.compile(r", \d\d:\d\d \w+ no\. \d+"))
    expect(page.locator(".sch-head .sch-chip")).to_have_text("queued")
    expect(page.locator(".sch-lead")).to_contain_text("No consumer of the queue")
    execution = SchedulerExecution.objects.get()
    assert (execution.requested_by, execution.params) == ("ada", {"since_days": 7})

    # In the inbox, one failed execution is republished and another is discarded with a reason.
    first = FailedExecutionFactory(scheduler=execution.scheduler, error_message="the first problem")
    second = FailedExecutionFactory(scheduler=execution.scheduler, error_message="the second problem")
    page.get_by_role("link", name="Failed inbox").first.click()
    choose(page, "the first problem", "Republish selected: run them again")
    expect(page.locator(".sch-lead")).to_contain_text("1 failed run will be queued again")
    page.get_by_role("button", name="Republish").click()
    expect(page.locator(".messagelist .success")).to_have_text("1 was republished.")
    expect(page.get_by_text("the first problem")).to_have_count(0)
    first.refresh_from_db()
    assert first.state == "queued"

    choose(page, "the second problem", "Discard selected, with a reason")
    page.get_by_label("Reason").fill("known, and fixed in release 7")
    page.get_by_role("button", name="Discard").click()
    expect(page.locator(".messagelist .success")).to_have_text("1 was discarded.")
    expect(page.get_by_text("Inbox empty.")).to_be_visible()
    second.refresh_from_db()
    assert (second.state, second.reason) == ("discarded", "Discarded by ada: known, and fixed in release 7")


def test_all_matching_failures_are_selected_across_pages(visit: Visit) -> None:
    UserFactory(username="olga", permissions=[*VIEW, *OPERATE])
    scheduler = SchedulerFactory()
    FailedExecutionFactory.create_batch(60, scheduler=scheduler)
    page = visit("olga")
    page.goto(reverse("admin:scheduling_failedexecution_changelist") + "?group=each")
    page.locator("#action-toggle").check()
    page.get_by_role("button", name="Select all 60 failed executions").click()
    page.get_by_label("Action:").select_option("republish_selected")
    page.get_by_role("button", name="Go").click()
    expect(page.locator(".sch-lead")).to_contain_text("60 failed runs will be queued again")
    page.get_by_label("Canary: run one first").uncheck()
    page.get_by_role("button", name="Republish").click()
    expect(page.locator(".messagelist .success")).to_have_text("60 were republished.")


def test_a_group_of_failures_is_republished(visit: Visit) -> None:
    UserFactory(username="olga", permissions=[*VIEW, *OPERATE])
    scheduler = SchedulerFactory()
    FailedExecutionFactory.create_batch(60, scheduler=scheduler, error_class="KeyError", fingerprint="a" * 40)
    FailedExecutionFactory.create_batch(3, scheduler=scheduler, error_class="OSError", fingerprint="b" * 40)
    page = visit("olga")
    page.goto(reverse("admin:scheduling_failedexecution_changelist"))
    expect(page.locator(".sch-groups tbody tr")).to_have_count(2)
    if directory := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{directory}/groups.png", full_page=True)
    page.get_by_role("button", name="Republish the group KeyError").click()
    expect(page.locator(".sch-lead")).to_contain_text("60 failed runs will be queued again")
    page.get_by_label("Canary: run one first").uncheck()
    page.get_by_role("button", name="Republish").click()
    expect(page.locator(".messagelist .success")).to_have_text("60 were republished.")
    page.get_by_role("link", name="Each failure").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(3)


def test_a_parameter_is_corrected_and_the_execution_republished(visit: Visit) -> None:
    UserFactory(username="olga", permissions=[*VIEW, *OPERATE])
    worker = WorkerFactory(name="tests.mark")
    row = FailedExecutionFactory(scheduler=SchedulerFactory(worker=worker, params={"seconds": 500}))
    page = visit("olga")
    page.goto(reverse("admin:scheduling_schedulerexecution_change", args=[row.pk]))
    page.get_by_role("link", name="Edit and republish").click()
    page.get_by_label("seconds").fill("601")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("[data-param=seconds] .errorlist")).to_contain_text("must be at most 600")
    if directory := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{directory}/edit.png", full_page=True)
    page.locator("summary", has_text="As JSON").click()
    expect(page.locator("textarea[name=params]")).to_have_value(re.compile('"seconds": 601'))
    page.locator("textarea[name=params]").fill('{"seconds": 5}')
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".sch-table")).to_contain_text("500")
    if directory:
        page.screenshot(path=f"{directory}/diff.png", full_page=True)
    page.get_by_role("button", name="Republish").click()
    expect(page.locator(".messagelist .success")).to_contain_text("It was republished")
    assert SchedulerExecution.objects.get(pk=row.pk).params == {"seconds": 5}


def test_executions_are_found_by_their_schedule(visit: Visit) -> None:
    UserFactory(username="vera", permissions=VIEW)
    wanted = SchedulerExecutionFactory(scheduler__description="Invoices of the night")
    SchedulerExecutionFactory.create_batch(2)
    page = visit("vera")
    page.goto(reverse("admin:scheduling_schedulerexecution_changelist"))
    page.locator(".sch-filters summary", has_text="Schedule").click()
    page.locator(".sch-filters .select2-selection").click()
    page.locator(".select2-search__field").fill("invoices")
    page.get_by_role("option", name="Invoices of the night").click()
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    expect(page.locator("#result_list")).to_contain_text(wanted.execution_key)
    page.get_by_role("link", name="Remove the filter Schedule: Invoices of the night").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(3)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_has_the_colours_that_the_browser_prefers(visit: Visit, scheme: str) -> None:
    UserFactory(username="ada", superuser=True)
    page = visit("ada", scheme)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 18, 18)"
    assert dark == (scheme == "dark")


def test_every_page_fits_its_window(visit: Visit) -> None:
    UserFactory(username="ada", superuser=True)
    hostile = "<script>alert(1)</script>" + "wide" * 40
    scheduler = SchedulerFactory(description=hostile)
    failed = SchedulerExecutionFactory(
        scheduler=scheduler, failed=True, error_message=hostile, params={"text": hostile}
    )
    AttemptFactory(execution=failed, number=1, error_message=hostile, traceback=hostile, consumer="x" * 120)
    OutputFactory(execution=failed, attempt=1, text=f"2026-03-10T12:00:00.000Z WARN {hostile}\n" * 50)
    running = SchedulerExecutionFactory(scheduler=scheduler, running=True)
    process = ProcessFactory()
    replay = Replay.objects.create(
        key=uuid.uuid4(), requested_by=hostile[:150], created_at=clock.now(), selection=hostile, reason=hostile,
        state="waiting", canary=running.pk, total=2,
    )  # fmt: skip
    ReplayChunk.objects.create(replay=replay, first=0, items=[[running.pk, 4], [failed.pk, 4]])
    pages = [
        *(
            reverse(f"admin:scheduling_{model}_changelist")
            for model in (
                "scheduler",
                "schedulerexecution",
                "failedexecution",
                "replay",
                "worker",
                "reminder",
                "channel",
                "process",
            )
        ),
        reverse("admin:scheduling_failedexecution_changelist") + "?group=error",
        reverse("admin:scheduling_replay_change", args=[replay.pk]),
        reverse("admin:scheduling_scheduler_add"),
        reverse("admin:scheduling_scheduler_change", args=[scheduler.pk]),
        reverse("admin:scheduling_scheduler_edit", args=[scheduler.pk]),
        reverse("admin:scheduling_scheduler_run", args=[scheduler.pk]),
        reverse("admin:scheduling_scheduler_delete", args=[scheduler.pk]),
        reverse("admin:scheduling_schedulerexecution_change", args=[failed.pk]),
        reverse("admin:scheduling_schedulerexecution_change", args=[running.pk]),
        reverse("admin:scheduling_schedulerexecution_rerun", args=[failed.pk]),
        reverse("admin:scheduling_schedulerexecution_cancel", args=[running.pk]),
        reverse("admin:scheduling_failedexecution_edit", args=[failed.pk]),
        reverse("admin:scheduling_worker_change", args=[scheduler.worker.pk]),
        reverse("admin:scheduling_reminder_add"),
        reverse("admin:scheduling_channel_add"),
        reverse("admin:scheduling_process_change", args=[process.pk]),
    ]
    page = visit("ada")
    for address in pages:
        response: Any = page.goto(address)
        assert response.status == 200, address
        assert page.locator("h1").count() >= 1, address
        for width in (420, 1280):
            page.set_viewport_size({"width": width, "height": 900})
            assert overflow(page) <= 0, (address, width)
