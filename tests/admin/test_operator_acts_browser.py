"""Tasks of an operator's day in a browser: make and pause schedules, run, cancel, republish and discard.

Each task costs no more clicks and page loads than `operator_tasks.TASKS` allows. `pytest -s` prints the table.
"""

from __future__ import annotations

import pytest
from django.utils import timezone as clock
from playwright.sync_api import expect

from scheduling.core.outcome import Succeeded
from scheduling.models import Replay, Scheduler, SchedulerExecution
from tests.admin import installation
from tests.admin.inbox import end_canary
from tests.admin.operator_tasks import Counted, FirstPage
from tests.factories import OutputFactory, WorkerFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_c_a_schedule_on_weekdays_with_params_retries_and_a_preview(first_page: FirstPage, task: Counted) -> None:
    WorkerFactory(name="tests.mark")
    page = first_page()
    with task(page, "c a new schedule") as operator:
        operator.click(page.locator("#nav-sidebar .model-scheduler .addlink"))
        page.get_by_label("Description").fill("Morning prices")
        operator.choose(page.locator("#id_worker"), "tests.mark")
        page.locator("#id_schedule").fill("15 8 * * 1-5")
        page.locator("#id_timezone").fill("Europe/Berlin")
        expect(page.locator("[data-live-url]").first).to_contain_text("08:15")
        page.get_by_label("seconds").fill("45")
        operator.click(page.locator("summary", has_text="Retry policy"))
        page.locator("#id_max_retries").fill("3")
        page.locator("#id_retry_delay_ms").fill("5m")
        operator.click(page.get_by_role("button", name="Save", exact=True))
        expect(page.get_by_role("heading", name="Morning prices")).to_be_visible()
    row = Scheduler.objects.get(description="Morning prices")
    assert (row.schedule, row.timezone, row.params) == ("15 8 * * 1-5", "Europe/Berlin", {"seconds": 45.0})
    assert (row.max_retries, row.retry_delay_ms) == (3, 300_000)


def test_d_five_schedules_are_paused_and_resumed(first_page: FirstPage, task: Counted) -> None:
    five, other = installation.other_schedules(5), installation.schedule("Price list")
    keys = [row.pk for row in five]
    page = first_page()
    with task(page, "d pause five") as operator:
        operator.click(page.locator("#nav-sidebar").get_by_role("link", name="Schedules"))
        for row in five:
            operator.click(page.get_by_role("row").filter(has_text=row.description).get_by_role("checkbox"))
        operator.choose(page.get_by_label("Action:"), "Pause selected")
        operator.click(page.get_by_role("button", name="Go"))
        page.get_by_label("Reason").fill("a move of the database")
        operator.click(page.get_by_role("button", name="Pause"))
        expect(page.locator(".messagelist")).to_contain_text("5 schedules were paused.")
    assert set(Scheduler.objects.filter(status=False).values_list("pk", flat=True)) == set(keys)
    page.goto("/admin/")
    with task(page, "d resume five") as operator:
        operator.click(page.locator("#nav-sidebar").get_by_role("link", name="Schedules"))
        operator.click(page.get_by_role("navigation", name="View").get_by_role("link", name="Paused"))
        expect(page.locator("#result_list tbody tr")).to_have_count(5)
        operator.click(page.locator("#action-toggle"))
        operator.choose(page.get_by_label("Action:"), "Resume selected")
        operator.click(page.get_by_role("button", name="Go"))
        expect(page.locator(".messagelist")).to_contain_text("5 schedules were resumed.")
    assert Scheduler.objects.filter(status=True).count() == 6
    assert Scheduler.objects.get(pk=other.pk).status


def test_e_and_f_a_run_with_other_params_is_followed_and_cancelled(first_page: FirstPage, task: Counted) -> None:
    row = installation.schedule("Price list")
    page = first_page()
    with task(page, "e run now with other params") as operator:
        operator.click(page.get_by_role("link", name="Price list"))
        operator.click(page.get_by_role("link", name="Run now"))
        page.get_by_label("seconds").fill("45")
        operator.click(page.get_by_role("button", name="Run now"))
        expect(page.locator(".sch-head .sch-chip")).to_have_text("queued")
    run = SchedulerExecution.objects.get(scheduler=row)
    assert (run.params, run.trigger, run.requested_by) == ({"seconds": 45.0}, "manual", "olga")
    expect(page.get_by_role("table", name="Chosen for this run")).to_contain_text("seconds")
    with task(page, "f follow and cancel, from the run") as operator:
        stored = SchedulerExecution.objects.filter(pk=run.pk)
        stored.update(state="running", attempt=1, started_at=clock.now(), pid=4242, consumer="host-1-aaaa")
        OutputFactory(execution=run, text="2026-03-10T12:00:00.000Z OUT first words\n")
        expect(page.locator(".sch-head .sch-chip")).to_have_text("running")
        expect(page.locator(".sch-log")).to_contain_text("first words")
        operator.click(page.get_by_role("link", name="Cancel execution"))
        operator.click(page.get_by_role("button", name="Cancel the run"))
        expect(page.locator(".messagelist")).to_be_visible()
        assert stored.get().cancel_requested_by == "olga"
        stored.update(state="cancelled", finished_at=clock.now())  # as its consumer does
        expect(page.locator(".sch-head .sch-chip")).to_have_text("cancelled")


def test_g_three_kinds_of_failures_are_found_republished_and_discarded(first_page: FirstPage, task: Counted) -> None:
    installation.failures()
    page = first_page()
    groups = page.locator(".sch-groups tbody tr")
    with task(page, "g find the kinds of 300 failures") as operator:
        operator.click(page.locator(".dash-tile", has_text="Failed"))
        expect(groups).to_have_count(3)
        for kind, count in installation.KINDS.items():
            expect(groups.filter(has_text=kind).first).to_contain_text(str(count))
    with task(page, "g republish a kind with a canary, from the inbox") as operator:
        operator.click(groups.filter(has_text="PaymentGatewayTimeout").get_by_role("button", name="Republish"))
        expect(page.get_by_label("Canary: run one first")).to_be_checked()
        page.get_by_label("Type 150 to confirm").fill("150")
        operator.click(page.get_by_role("button", name="Republish"))
        expect(page.locator(".messagelist .success")).to_contain_text("149 others follow")
    end_canary(Succeeded())
    expect(page.locator(".sch-replays")).to_contain_text("of 150 sent.")
    assert Replay.objects.get().total == 150
    with task(page, "g discard a kind, from the inbox") as operator:
        operator.click(groups.filter(has_text="DiskFull").get_by_role("button", name="Discard"))
        page.get_by_label("Reason").fill("the disk was changed")
        page.get_by_label("Type 49 to confirm").fill("49")
        operator.click(page.get_by_role("button", name="Discard"))
        expect(page.locator(".messagelist .success")).to_contain_text("49 were discarded.")
    assert SchedulerExecution.objects.filter(state="discarded").count() == 49


def test_h_a_failure_runs_again_with_other_params(first_page: FirstPage, task: Counted) -> None:
    installation.failures(["DiskFull"])
    failure = installation.one_failure()
    page = first_page()
    with task(page, "h rerun a failure with other params") as operator:
        operator.click(page.locator(".dash-attention").get_by_role("link", name="WrongPath"))
        operator.click(page.locator("td.field-buttons summary"))
        operator.click(page.get_by_role("link", name="Edit and republish"))
        page.get_by_label("seconds").fill("45")
        operator.click(page.get_by_role("button", name="Continue: see what changes"))
        expect(page.get_by_role("table", name="What changes")).to_contain_text("45")
        operator.click(page.get_by_role("button", name="Republish"))
        expect(page.locator(".sch-head .sch-chip")).to_have_text("queued")
    stored = SchedulerExecution.objects.get(pk=failure.pk)
    assert (stored.state, stored.params) == ("queued", {"seconds": 45.0})


def test_k_one_failure_is_republished_from_its_row(first_page: FirstPage, task: Counted) -> None:
    failure = installation.one_failure()
    page = first_page()
    page.locator("#nav-sidebar").get_by_role("link", name="Failed inbox").click()
    expect(page.locator("#result_list")).to_be_visible()
    with task(page, "k republish one failure, from the inbox") as operator:
        operator.click(page.get_by_role("link", name=f"Republish execution {failure.pk}"))
        operator.click(page.get_by_role("button", name="Republish"))
        expect(page.locator(".messagelist .success")).to_contain_text("Queued again")
    assert SchedulerExecution.objects.get(pk=failure.pk).state == "queued"
