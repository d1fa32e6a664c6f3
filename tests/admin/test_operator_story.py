"""An operator finds last night's failure in a browser, corrects its parameter and sees the execution succeed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.admin.models import LogEntry
from django.utils import timezone as clock
from playwright.sync_api import Page, expect

from scheduling.models import Scheduler, SchedulerExecution
from tests.admin.audit import entry_line
from tests.admin.chromium import Visit
from tests.admin.conftest import OPERATE, VIEW
from tests.factories import AttemptFactory, FailedExecutionFactory, SchedulerFactory, UserFactory, WorkerFactory
from tests.support import Commands

pytestmark = [pytest.mark.browser, pytest.mark.processes, pytest.mark.django_db(transaction=True)]

RIGHTS = [*VIEW, *OPERATE, "scheduling.view_dashboard", "scheduling.change_scheduler"]


@pytest.fixture
def commands(transactional_db: None, tmp_path: Path) -> Iterator[Commands]:
    """An object that starts `manage.py` commands as real processes. The processes use the test database."""
    made = Commands(tmp_path)
    yield made
    made.end()


def failed_last_night(wrong: Path) -> SchedulerExecution:
    """Return a nightly execution in the failed inbox. A wrong parameter made every attempt fail."""
    scheduler = SchedulerFactory(
        description="Nightly export", schedule="15 2 * * *", worker=WorkerFactory(name="tests.mark"),
        params={"directory": str(wrong)},
    )  # fmt: skip
    due = clock.now() - timedelta(hours=6)
    error = {"error_class": "FileNotFoundError", "error_message": f"No such file or directory: '{wrong}'"}
    row: SchedulerExecution = FailedExecutionFactory(
        scheduler=scheduler, scheduled_at=due, executed_at=due, published_at=due, attempt=3,
        started_at=due + timedelta(seconds=2), finished_at=due + timedelta(seconds=3), **error,
    )  # fmt: skip
    for number in (1, 2, 3):
        began = due + timedelta(seconds=number - 1)
        AttemptFactory(
            execution=row, number=number, started_at=began, finished_at=began,
            retry_at=began + timedelta(seconds=1) if number < 3 else None, **error,
        )  # fmt: skip
    return row


def picture(page: Page, name: str) -> None:
    """Save a screenshot if the environment variable SCREENSHOTS names a directory."""
    if directory := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{directory}/{name}.png", full_page=True)


def test_operator_finds_mends_and_republishes_a_nightly_failure(
    visit: Visit, commands: Commands, tmp_path: Path
) -> None:
    UserFactory(username="olga", permissions=RIGHTS)
    right, wrong = tmp_path / "export", tmp_path / "exprot"
    right.mkdir()
    row = failed_last_night(wrong)
    commands.ready(commands.start("run_worker"))

    # The operator finds the failure from the first page by clicks only.
    page = visit("olga")
    page.get_by_role("link", name="Dashboard").first.click()
    tile = page.locator(".dash-tile", has_text="Failed")
    expect(tile.locator("strong")).to_have_text("1")
    expect(tile).to_contain_text(re.compile(r"The oldest: [56] h"))
    picture(page, "story-dashboard")
    tile.click()
    expect(page.locator("#result_list")).to_contain_text("No such file or directory")
    page.locator("#result_list .field-error a").click()

    # The execution's page shows the error and offers "Edit and republish".
    expect(page.locator(".sch-head .sch-chip")).to_have_text("failed")
    expect(page.locator(".sch-lead")).to_contain_text(f"No such file or directory: '{wrong}'")
    picture(page, "story-failed")
    page.get_by_role("link", name="Edit and republish").click()

    # The operator corrects the parameter, checks the change and republishes.
    expect(page.locator(".sch-facts").get_by_role("link", name="Nightly export")).to_be_visible()
    page.get_by_label("directory").fill(str(right))
    picture(page, "story-mend")
    page.get_by_role("button", name="Continue: see what changes").click()
    changes = page.get_by_role("table", name="What changes")
    expect(changes.locator("del")).to_have_text(f'"{wrong}"')
    expect(changes.locator("ins")).to_have_text(f'"{right}"')
    page.get_by_role("button", name="Republish").click()
    expect(page.locator(".messagelist .success")).to_have_text(
        "It was republished with the parameters that are shown here."
    )

    # The page updates itself until the execution has succeeded.
    expect(page.locator(".sch-head .sch-chip")).to_have_text("succeeded")
    expect(page.locator(".sch-lead")).to_contain_text("Attempt 4 succeeded")
    expect(page.get_by_role("table", name=re.compile("Done by hand"))).to_contain_text(f'"{wrong}" -> "{right}"')
    expect(page.locator("[data-follow-empty]")).to_have_text("No output.")
    picture(page, "story-succeeded")
    assert (right / f"{row.pk}.txt").read_text().split()[::3] == ["start", "end"]

    # The schedule still has the wrong parameter. The page warns about this parameter and links to the schedule.
    expect(page.locator(".messagelist .warning")).to_contain_text("Its schedule keeps its own parameters")
    page.get_by_role("link", name="Change them in the schedule").click()
    page.get_by_label("directory").fill(str(right))
    page.get_by_role("button", name="Save", exact=True).first.click()
    expect(page.locator(".messagelist .success")).to_contain_text("was changed successfully")
    assert Scheduler.objects.get(description="Nightly export").params == {"directory": str(right)}

    # The dashboard shows an empty inbox.
    page.get_by_role("link", name="Dashboard").first.click()
    expect(tile).to_contain_text("The inbox is empty.")
    expect(page.locator("tr", has_text="Nightly export").locator(".dash-last")).to_contain_text("succeeded")
    picture(page, "story-done")
    assert {entry_line(entry) for entry in LogEntry.objects.filter(object_id=str(row.pk))} >= {
        f'republish; params.directory: "{wrong}" -> "{right}"'
    }
