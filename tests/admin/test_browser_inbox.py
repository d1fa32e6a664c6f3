"""Tests of the failed inbox in a real browser: a replay with a canary, a typed confirmation and a double click."""

from __future__ import annotations

import os

import pytest
from django.urls import reverse
from playwright.sync_api import Page, expect

from scheduling.core.outcome import Failed, Succeeded
from scheduling.models import Replay, SchedulerExecution
from tests.admin.chromium import Visit, choose, overflow
from tests.admin.conftest import OPERATE, VIEW
from tests.admin.inbox import end_canary, fill
from tests.factories import FailedExecutionFactory, SchedulerFactory, UserFactory, WorkerFactory

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

INBOX = reverse("admin:scheduling_failedexecution_changelist")
GROUPED = f"{INBOX}?group=error"


def picture(page: Page, name: str) -> None:
    """Save a screenshot if the environment variable SCREENSHOTS names a directory."""
    if directory := os.environ.get("SCREENSHOTS"):
        page.screenshot(path=f"{directory}/{name}.png", full_page=True)


def republish_group(page: Page, group: str) -> None:
    """Republish a whole error group with a canary first."""
    page.get_by_role("button", name=f"Republish the group {group}").click()
    page.get_by_label("Canary: run one first").check()
    page.get_by_role("button", name="Republish").click()


def test_the_others_follow_a_canary_that_succeeds(visit: Visit) -> None:
    UserFactory(username="olga", permissions=[*VIEW, *OPERATE])
    rows = FailedExecutionFactory.create_batch(6, scheduler=SchedulerFactory(), error_class="KeyError")
    other = FailedExecutionFactory(error_class="OSError", error_message="disk is full")
    page = visit("olga")
    page.goto(GROUPED)
    republish_group(page, "KeyError")
    expect(page.locator(".messagelist .success")).to_have_text(
        f"Execution {rows[0].pk} goes first. 5 others follow when it has succeeded."
    )
    replays = page.locator(".sch-replays")
    expect(replays).to_contain_text("testing one run")
    expect(replays).to_contain_text("5 others wait for the canary.")
    expect(replays).to_contain_text(f"all failures with KeyError (error group {rows[0].fingerprint[:12]}), by olga")
    picture(page, "canary-runs")
    assert SchedulerExecution.objects.filter(state="failed").count() == 6
    # The page updates itself after the canary has succeeded.
    end_canary(Succeeded())
    expect(replays).to_contain_text("6 of 6 sent.")
    # The list of error groups is now out of date. The page says so and links to the current list.
    expect(page.locator(".sch-groups tbody tr")).to_have_count(2)
    replays.get_by_role("link", name="Show it as it is now").click()
    expect(page.locator(".sch-groups tbody tr")).to_have_count(1)
    expect(page.get_by_role("link", name="Show it as it is now")).to_have_count(0)
    expect(replays.get_by_role("button", name="Stop")).to_have_count(0)
    picture(page, "canary-done")
    assert set(SchedulerExecution.objects.filter(state="failed").values_list("pk", flat=True)) == {other.pk}
    replays.get_by_role("link", name="Replay").click()
    expect(page.locator(".sch-samples li")).to_have_count(6)


def test_no_other_follows_a_canary_that_fails(visit: Visit) -> None:
    UserFactory(username="olga", permissions=[*VIEW, *OPERATE])
    rows = FailedExecutionFactory.create_batch(6, scheduler=SchedulerFactory(), error_class="KeyError")
    page = visit("olga")
    page.goto(GROUPED)
    republish_group(page, "KeyError")
    replays = page.locator(".sch-replays")
    expect(replays).to_contain_text("testing one run")
    before = list(SchedulerExecution.objects.exclude(pk=rows[0].pk).order_by("pk").values())
    end_canary(Failed("builtins.KeyError", "<img src=x onerror=alert(1)>"))
    expect(replays).to_contain_text("The canary failed: builtins.KeyError: <img src=x onerror=alert(1)>")
    expect(replays).to_contain_text("1 of 6 sent.")
    picture(page, "canary-failed")
    assert list(SchedulerExecution.objects.exclude(pk=rows[0].pk).order_by("pk").values()) == before


def test_a_replay_is_stopped_from_the_inbox(visit: Visit) -> None:
    UserFactory(username="olga", permissions=[*VIEW, *OPERATE])
    FailedExecutionFactory.create_batch(3, scheduler=SchedulerFactory(), error_class="KeyError")
    page = visit("olga", "dark", 420)
    page.goto(GROUPED)
    republish_group(page, "KeyError")
    button = page.get_by_role("button", name="Stop replay")
    button.focus()
    # The page's script replaces the button and focuses the new button, so a keyboard user does not lose the focus.
    expect(page.locator("[data-poll-status]")).to_contain_text("Replays updated at")
    expect(button).to_be_focused()
    assert overflow(page) <= 0
    picture(page, "canary-narrow-dark")
    page.keyboard.press("Enter")
    expect(page.locator(".messagelist .success")).to_contain_text("It is stopped. 1 of 3 sent.")
    expect(page.locator(".sch-replays")).to_contain_text("Stopped by olga.")
    end_canary(Succeeded())
    assert SchedulerExecution.objects.filter(state="failed").count() == 2


def test_many_failures_are_confirmed_by_typing_their_number(visit: Visit) -> None:
    UserFactory(username="olga", permissions=[*VIEW, *OPERATE])
    fill(120)
    page = visit("olga")
    page.goto(GROUPED)
    # A group's row fits beside the sidebar. The buttons at the end of the row are visible without scrolling.
    assert page.evaluate("[...document.querySelectorAll('.sch-scroll')].every(e => e.scrollWidth <= e.clientWidth)")
    page.get_by_role("button", name="Republish the group ValueError").click()
    page.get_by_label("Canary: run one first").uncheck()
    page.get_by_role("button", name="Republish").click()  # the browser stops at the empty required field
    expect(page.get_by_label("Type 120 to confirm")).to_be_focused()
    page.get_by_label("Type 120 to confirm").fill("12")
    page.get_by_label("Spread over (minutes)").fill("30")
    page.get_by_role("button", name="Republish").click()
    expect(page.locator(".errornote")).to_have_text("Type 120 to confirm.")
    expect(page.get_by_label("Spread over (minutes)")).to_have_value("30")
    picture(page, "typed")
    assert not SchedulerExecution.objects.exclude(state="failed").exists()
    page.get_by_label("Type 120 to confirm").fill("120")
    page.get_by_role("button", name="Republish").click()
    expect(page.locator(".messagelist .success")).to_have_text("120 were republished.")
    assert not SchedulerExecution.objects.filter(state="failed").exists()


@pytest.mark.parametrize("canary", [False, True])
def test_a_double_click_republishes_once(visit: Visit, canary: bool) -> None:
    UserFactory(username="olga", permissions=[*VIEW, *OPERATE])
    schedule = SchedulerFactory()
    rows = FailedExecutionFactory.create_batch(4, scheduler=schedule)
    page = visit("olga")
    page.goto(GROUPED)
    page.get_by_role("button", name="Republish the group ValueError").click()
    if canary:
        page.get_by_label("Canary: run one first").check()
    page.get_by_role("button", name="Republish").dblclick()
    expect(page.locator(".messagelist li")).to_have_count(1)
    sent = {row.pk: row.state for row in SchedulerExecution.objects.all()}
    assert sorted(sent.values()) == (["failed"] * 3 + ["queued"] if canary else ["queued"] * 4)
    assert Replay.objects.count() == int(canary)
    assert SchedulerExecution.objects.filter(pk=rows[0].pk, attempt=4, retry_base=4).exists()


def test_failures_of_one_schedule_are_found(visit: Visit) -> None:
    UserFactory(username="olga", permissions=[*VIEW, *OPERATE])
    FailedExecutionFactory(scheduler__description="Invoices of the night", error_message="the wanted one")
    FailedExecutionFactory(scheduler=SchedulerFactory(worker=WorkerFactory(name="tests.fail")))
    page = visit("olga")
    page.goto(INBOX)
    page.locator(".sch-filters summary", has_text="Schedule").click()
    page.locator(".sch-filters .select2-selection").click()
    page.locator(".select2-search__field").fill("invoices")
    page.get_by_role("option", name="Invoices of the night").click()
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#result_list tbody tr")).to_have_count(1)
    expect(page.locator("#result_list")).to_contain_text("the wanted one")
    choose(page, "the wanted one", "Republish selected: run them again")
    expect(page.get_by_label("Canary: run one first")).to_have_count(0)
    page.get_by_role("button", name="Republish").click()
    expect(page.locator(".messagelist .success")).to_have_text("1 was republished.")
