"""The question "Did it run at …?" in a browser, without JavaScript, and its answers checked by axe-core."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse
from django.utils import timezone as clock
from playwright.sync_api import expect

from tests.admin.axe import page_faults
from tests.admin.chromium import Visit
from tests.admin.scheduler_form import overview
from tests.factories import SchedulerExecutionFactory, SchedulerFactory, UserFactory
from tests.support import NOON

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_an_operator_asks_and_follows_the_answer_without_javascript(visit: Visit) -> None:
    UserFactory(username="ada", superuser=True)
    row = SchedulerFactory(schedule="0 * * * *", timezone="Europe/Berlin")
    made = SchedulerExecutionFactory(
        scheduler=row, skipped=True, scheduled_at=NOON, execution_key="cron-2026-3-10-12-0", missed=1
    )
    page = visit("ada", script=False)
    page.goto(overview(row))
    page.get_by_label("Time in Europe/Berlin").fill("2026-03-10 13:00")
    page.get_by_role("button", name="Check").click()
    expect(page.locator(".sch-why-answer")).to_contain_text("It did not run. Missed 3 occurrences")
    page.get_by_role("link", name=f"execution {made.pk}").click()
    expect(page).to_have_url(re.compile(reverse("admin:scheduling_schedulerexecution_change", args=[made.pk]) + "$"))


def test_answers_have_no_accessibility_faults(visit: Visit) -> None:
    UserFactory(username="ada", superuser=True)
    row = SchedulerFactory(schedule="0 * * * *")
    SchedulerExecutionFactory(scheduler=row, succeeded=True, scheduled_at=NOON, execution_key="cron-2026-3-10-12-0")
    page = visit("ada", strict=False)
    wrong: list[str] = []
    for typed in ("2026-03-10 12:00", "2026-03-10 12:30", f"{clock.now().year + 1}-03-10 12:00", "nonsense"):
        page.goto(reverse("admin:scheduling_scheduler_why", args=[row.pk], query={"at": typed}))
        wrong += page_faults(page, "scheduling_scheduler_why")
    assert not wrong, "\n".join(wrong)
