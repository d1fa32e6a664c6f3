"""All pages of a run give the same time: in the zone of its schedule, with the viewer's time as the title."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from bs4 import BeautifulSoup
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.admin.ui.times import format_minute, time_tag, times_in
from scheduling.models import Scheduler
from tests.admin.scheduler_form import overview
from tests.factories import AttemptFactory, SchedulerExecutionFactory, SchedulerFactory

pytestmark = pytest.mark.django_db

DUE = datetime(2026, 3, 10, 2, 3, tzinfo=UTC)
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
def failed_in_berlin() -> Scheduler:
    """A schedule in Berlin whose run failed."""
    row: Scheduler = SchedulerFactory(timezone="Europe/Berlin")
    execution = SchedulerExecutionFactory(
        scheduler=row, failed=True, attempt=1, scheduled_at=DUE, executed_at=DUE, published_at=DUE, started_at=DUE,
        finished_at=DUE,
    )  # fmt: skip
    AttemptFactory(execution=execution, number=1, started_at=DUE, finished_at=DUE)
    return row


def times(client: Client, address: str) -> list[tuple[str, str]]:
    """Return text and title of each time element of a page."""
    soup = BeautifulSoup(client.get(address).content, "html.parser")
    return [(tag.text, str(tag["title"])) for tag in soup.select("#content-main time.sch-time")]


def test_list_page_and_inbox_give_the_same_time(viewer: Client, failed_in_berlin: Scheduler) -> None:
    execution = failed_in_berlin.executions.get()
    pages = [
        reverse("admin:scheduling_schedulerexecution_changelist"),
        reverse("admin:scheduling_schedulerexecution_change", args=[execution.pk]),
        reverse("admin:scheduling_schedulerexecution_follow", args=[execution.pk]),
        reverse("admin:scheduling_failedexecution_changelist") + "?group=each",
    ]
    for page in pages:
        body = viewer.get(page).content.decode()
        assert "2026-03-10 03:03:00 CET" in body, page
        assert "2026-03-10 02:03:00 UTC</time>" not in body, page
    for page in (pages[0], pages[1], pages[3]):
        found = times(viewer, page)
        assert found, page
        assert set(found) == {("2026-03-10 03:03:00 CET", "2026-03-10 02:03:00 UTC")}, page


def test_the_tooltips_of_the_bars_name_the_zone(editor: Client, failed_in_berlin: Scheduler) -> None:
    for page in (overview(failed_in_berlin), reverse("admin:scheduling_dashboard_changelist")):
        titles = re.findall(r"<title>([^<]*2026-03-10[^<]*)</title>", editor.get(page).content.decode())
        assert titles, page
        assert {title[:20] for title in titles} == {"2026-03-10 03:03 CET"}, page


def test_the_title_is_another_clock_than_the_text() -> None:
    for zone, title in ((BERLIN, "2026-03-10 02:03:00 UTC"), (UTC, "2026-03-10T02:03:00Z")):
        assert f'title="{title}"' in time_tag(DUE, zone)
    with clock.override(BERLIN):
        assert 'title="2026-03-10 03:03:00 CET"' in time_tag(DUE, ZoneInfo("Asia/Tokyo"))
        assert 'title="2026-03-10 02:03:00 UTC"' in time_tag(DUE)
        assert format_minute(DUE) == "2026-03-10 03:03 CET"
    with times_in(BERLIN):
        assert "03:03:00 CET" in time_tag(DUE)
    assert "02:03:00 UTC" in time_tag(DUE)


def test_the_age_of_a_skipped_occurrence_counts_from_its_due_time_everywhere(editor: Client) -> None:
    row, now = SchedulerFactory(), clock.now()
    due = now - timedelta(hours=17, minutes=18)
    SchedulerExecutionFactory(scheduler=row, skipped=True, scheduled_at=due, finished_at=now - timedelta(hours=14))
    for name in ("scheduler_changelist", "dashboard_changelist"):
        page = editor.get(reverse(f"admin:scheduling_{name}")).content.decode()
        assert "17 h 18 min ago" in page, name
        assert "14 h ago" not in page, name
    page = editor.get(overview(row)).content.decode()
    assert page.count("17 h 18 min ago") == 2
    assert "14 h ago" not in page
