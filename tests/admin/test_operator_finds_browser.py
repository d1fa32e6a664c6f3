"""Tasks of an operator's day in a browser: find out what is wrong, why, and who did what.

Each task costs no more clicks and page loads than `operator_tasks.TASKS` allows. `pytest -s` prints the table.
"""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone as clock
from playwright.sync_api import expect

from scheduling.models import Scheduler
from tests.admin import installation
from tests.admin.conftest import logged_in
from tests.admin.operator_tasks import TASKS, Counted, FirstPage
from tests.admin.pages import page_of
from tests.admin.scheduler_form import change, form
from tests.factories import SchedulerExecutionFactory
from tests.reports.support import artefact_of

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_what_is_unhealthy_and_why(first_page: FirstPage, task: Counted) -> None:
    installation.failures()
    slow = installation.slow_run_of_last_night()
    SchedulerExecutionFactory(scheduler=slow.scheduler, running=True, started_at=clock.now() - timedelta(minutes=20))
    skipped, paused = installation.schedule("Shard 7"), installation.schedule("Newsletter", status=False)
    SchedulerExecutionFactory(scheduler=skipped, skipped=True)
    since = clock.now() - timedelta(days=3)
    Scheduler.objects.filter(pk=paused.pk).update(paused_at=since, paused_by="anna", pause_reason="storage full")
    page = first_page()
    with task(page, "a unhealthy, and why"):
        attention = page.locator(".dash-attention")
        for number, (kind, count) in enumerate(installation.KINDS.items(), 1):
            expect(attention).to_contain_text(f"{count} x {kind}")
            expect(attention).to_contain_text(f"Import orders {number}, first failure ")
        expect(attention).to_contain_text("Runs that take much longer than usual: 1.")
        expect(attention).to_contain_text("20 min, usually 2 min")
        expect(attention).to_contain_text("Shard 7")
        expect(attention).to_contain_text("Newsletter")
        expect(attention).to_contain_text("3 d, by anna: storage full")
        row = page.get_by_role("row").filter(has_text="Shard 7")
        expect(row).to_contain_text("skipped")


def test_b_why_it_did_not_run_at_three(first_page: FirstPage, task: Counted) -> None:
    installation.paused_over_three_o_clock()
    page = first_page()
    with task(page, "b why not at 03:00") as operator:
        operator.click(page.get_by_role("link", name="Storage report"))
        page.get_by_label("Time in Europe/Berlin").fill("03:00")
        operator.click(page.get_by_role("button", name="Check"))
        expect(page.locator(".sch-why-answer")).to_contain_text("anna")
        expect(page.locator(".sch-why-answer")).to_contain_text("storage full")


def test_i_the_slow_runs_of_last_night(first_page: FirstPage, task: Counted) -> None:
    slow = installation.slow_run_of_last_night()
    page = first_page()
    with task(page, "i slow runs of last night") as operator:
        operator.click(page.locator("#nav-sidebar").get_by_role("link", name="Executions"))
        operator.click(page.get_by_role("navigation", name="View").get_by_role("link", name="Slow last night"))
        rows = page.locator("#result_list tbody tr")
        expect(rows).to_have_count(1)
        expect(rows.get_by_role("link", name=str(slow.pk), exact=True)).to_be_visible()
        expect(rows).to_contain_text("6.5x the median of 2 min")


def test_j_who_changed_what(first_page: FirstPage, task: Counted) -> None:
    row = installation.schedule("Price list")
    editor = logged_in(User.objects.get(username="olga"))
    values = form(description="Price list", worker=str(row.worker_id), schedule="30 4 * * *", timezone="Europe/Berlin")
    answer = editor.post(change(row), {**values, "params": '{"seconds": 120}'}, headers={"host": "localhost"})
    assert answer.status_code == 302
    page = first_page()
    with task(page, "j who changed what") as operator:
        operator.click(page.get_by_role("link", name="Activity"))
        line = page.get_by_role("row").filter(has_text="Price list").filter(has_text="olga")
        expect(line.locator("del").filter(has_text="0 3 * * *")).to_be_visible()
        expect(line.locator("ins").filter(has_text="30 4 * * *")).to_be_visible()


def test_l_the_csv_of_a_run(first_page: FirstPage, task: Counted) -> None:
    row = installation.schedule("Sales by region")
    run = installation.ran(row, clock.now() - timedelta(hours=2), 60)
    artefact_of(run)
    page = first_page()
    with task(page, "l CSV of a run") as operator:
        line = page.get_by_role("row").filter(has_text="Sales by region")
        operator.click(line.locator("td.dash-last a"))
        with page.expect_download() as download:
            operator.click(page.get_by_role("link", name="numbers.csv"))
        assert download.value.suggested_filename == "numbers.csv"
    page.goto(page_of(run))
    with task(page, "l CSV of a run, from its page") as operator, page.expect_download():
        operator.click(page.get_by_role("link", name="numbers.csv"))


def test_m_the_load_of_the_next_day(first_page: FirstPage, task: Counted) -> None:
    installation.other_schedules(5)
    page = first_page()
    with task(page, "m load of the next 24 hours") as operator:
        hour = page.locator(".dash-day a")
        expect(hour).to_have_attribute("aria-label", re.compile(r"5 runs, about 5 minutes of work, room for \d+"))
        operator.click(hour)
        expect(page.get_by_role("heading", name="Runs from")).to_be_visible()
        expect(page.locator("#content")).to_contain_text("Sync of shop 5")


def test_every_task_is_tested(request: pytest.FixtureRequest) -> None:
    sources = [path.read_text() for path in request.path.parent.glob("test_operator_*.py")]
    assert [name for name in TASKS if not any(f'task(page, "{name}")' in source for source in sources)] == []
