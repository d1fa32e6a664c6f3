"""The pages that say how long executions are kept: the schedule's page, its form, and the page of the rules."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client, override_settings
from django.urls import reverse

from scheduling.admin.executions.retention import RetentionPage
from scheduling.models import Scheduler
from tests.admin.conftest import logged_in
from tests.admin.scheduler_form import ADD, change, form, overview, worker
from tests.execution.retention import keys, left, make_executions
from tests.factories import SchedulerFactory, UserFactory

pytestmark = pytest.mark.django_db

PAGE = reverse("admin:scheduling_schedulerexecution_retention")
LIST = reverse("admin:scheduling_schedulerexecution_changelist")


def main(client: Client, address: str = PAGE) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return " ".join(response.content.decode().split('id="content-main"')[1].split())


def test_the_page_shows_the_rules_and_what_the_next_pass_removes(viewer: Client) -> None:
    rows = make_executions("succeeded", 3) + make_executions("failed", 2)
    page = main(viewer)
    assert "Runs that ended are removed 30 days after their end." in page
    assert "Failures stay in the inbox until an operator acts." in page
    assert "Output and files are removed together with their run." in page
    assert '<th scope="row">Succeeded, age of successes</th><td class="sch-number">3</td>' in page
    assert '<th scope="row">Failed, age of failures</th><td class="sch-number">0</td>' in page
    assert "The counting was stopped" not in page
    assert left(rows) == keys(rows)
    names = {"SUCCESS": "7", "FAILED": "1", "OUTPUT": "2", "ONE_TIME": "4"}
    with override_settings(CRON_RETENTION_KEEP=1000, **{f"CRON_RETENTION_{k}_DAYS": v for k, v in names.items()}):
        page = main(viewer)
    for sentence in (
        "Successful runs are removed 7 days after their end.",
        "Cancelled, discarded and skipped runs are removed 30 days after their end.",
        "Failures leave the inbox 1 day after their end.",
        "Output and files are removed 2 days after the run.",
        "Only the newest 1,000 runs are kept, and failures.",
        "Spent one-time schedules are removed 4 days after their date.",
    ):
        assert sentence in page
    assert '<th scope="row">Failed, age of failures</th><td class="sch-number">2</td>' in page
    assert left(rows) == keys(rows)


def test_a_count_that_takes_too_long_is_cut(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    make_executions("succeeded", 3)
    monkeypatch.setattr(RetentionPage, "count_seconds", 0.0)
    page = main(viewer)
    assert "The counting was stopped after a second." in page
    assert '<td class="sch-number">0+</td>' in page


def test_schedules_with_values_of_their_own_are_listed(viewer: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [SchedulerFactory(rare=True, description=f"<b>own {n}</b>", keep_success_days=n + 1) for n in range(3)]
    SchedulerFactory(description="without")
    page = main(viewer)
    assert "&lt;b&gt;own 0&lt;/b&gt;" in page
    assert "Successful runs are removed 1 day after their end." in page
    assert "without" not in page
    monkeypatch.setattr(RetentionPage, "most_schedules", 2)
    page = main(viewer)
    assert "own 2" not in page
    assert "Only the first schedules are shown." in page
    only_runs = logged_in(UserFactory(permissions=["scheduling.view_schedulerexecution"]))
    assert "own 0" not in main(only_runs)
    assert logged_in(UserFactory(permissions=["scheduling.view_scheduler"])).get(PAGE).status_code == 403
    assert viewer.post(PAGE).status_code == 405
    assert rows[0].retention_errors() == {}


def test_the_list_of_executions_leads_to_the_page(viewer: Client) -> None:
    assert f'<a href="{PAGE}">How long executions are kept</a>' in viewer.get(LIST).content.decode()


def test_a_schedules_page_says_what_is_kept(viewer: Client) -> None:
    row, once = SchedulerFactory(rare=True, keep_failed_days=90, keep_count=1), SchedulerFactory(once=True)
    page = main(viewer, overview(row))
    assert "This schedule's own values apply before those of the settings." in page.replace("&#x27;", "'")
    assert "Failures leave the inbox 90 days after their end." in page
    assert "Only the newest run is kept, and failures." in page
    assert f'<a href="{PAGE}">What the next clean-up removes</a>' in page
    with override_settings(CRON_RETENTION_ONE_TIME_DAYS="14"):
        page = main(viewer, overview(once))
    assert "These values come from the settings." in page
    assert "This schedule is removed 14 days after its date" in page
    without = logged_in(UserFactory(permissions=["scheduling.view_scheduler"]))
    assert PAGE not in main(without, overview(row))


def test_a_value_that_sql_wrote_is_told(viewer: Client) -> None:
    row = SchedulerFactory(rare=True, keep_count=5)
    if connection.vendor == "postgresql":
        Scheduler.objects.filter(pk=row.pk).update(keep_count=0)
    else:
        with connection.cursor() as cursor:
            cursor.execute("UPDATE scheduling_scheduler SET keep_count = 0 WHERE id = %s", [row.pk])
    for address in (PAGE, overview(row)):
        assert "It must be a whole number from 1 to 32767, not 0." in main(viewer, address)


def test_the_form_stores_and_refuses_values(editor: Client) -> None:
    page = editor.get(ADD).content.decode()
    for hint in ("inherited: 30", "inherited: never", "inherited: with the run", "inherited: no limit"):
        assert f'placeholder="{hint}"' in page
    values = {"keep_success_days": "5", "keep_failed_days": "60", "keep_output_days": "2", "keep_count": "100"}
    assert editor.post(ADD, form(worker=worker(), **values)).status_code == 302
    row = Scheduler.objects.get()
    stored = (row.keep_success_days, row.keep_failed_days, row.keep_output_days, row.keep_count)
    assert stored == (5, 60, 2, 100)
    for name in values:
        for bad in ("0", "-1", "x", "1.5", "99999", "9" * 400):
            response = editor.post(change(row), form(worker=worker(), **{**values, name: bad}))
            assert response.status_code == 200, (name, bad)
            assert 'class="errorlist"' in response.content.decode()
    page = editor.post(change(row), form(worker=worker(), keep_count="0")).content.decode()
    assert "It must be a whole number from 1 to 32767." in page
    assert 'value="100"' in editor.get(f"{ADD}?copy={row.pk}").content.decode()
