"""The pages of schedules that are spread, bounded, or catch up in their own way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.test import Client
from django.urls import reverse
from django.utils import timezone as clock

from scheduling.core.spread_offset import SpreadOffset
from scheduling.core.timing import Exclusions
from scheduling.models import Scheduler, own_timing
from scheduling.models.own_timing import PLAIN
from scheduling.models.scheduler import Scheduler as Row
from tests.admin.scheduler_form import ADD, change, form, overview, worker
from tests.core.slow_timing import Window
from tests.factories import SchedulerExecutionFactory, SchedulerFactory
from tests.support import NOON

pytestmark = pytest.mark.django_db

RULES: dict[str, Any] = {
    "spread_seconds": "30m", "spread_each": "", "missed_runs": "all", "missed_cap": "7",
    "missed_within_seconds": "2h", "active_from_0": "2026-01-01", "active_from_1": "08:00",
    "active_until_0": "2999-12-31", "active_until_1": "", "on_excluded": "hold",
}  # fmt: skip


def text(response: Any) -> str:
    return " ".join(BeautifulSoup(response.content.decode(), "html.parser").get_text(" ").split())


def test_the_form_stores_the_rules_and_the_page_says_them(editor: Client) -> None:
    values = form(worker=worker(), timezone="Europe/Madrid", **{**RULES, "active_until_1": "23:59"})
    assert editor.post(ADD, values).status_code == 302
    row = Scheduler.objects.get(description="Nightly")
    stored = {name: getattr(row, name) for name in PLAIN}
    assert stored == {
        "spread_seconds": 1800, "spread_each": False, "missed_runs": "all", "missed_cap": 7,
        "missed_within_seconds": 7200, "active_from": datetime(2026, 1, 1, 7, tzinfo=UTC),
        "active_until": datetime(2999, 12, 31, 22, 59, tzinfo=UTC), "on_excluded": "hold",
    }  # fmt: skip
    page = text(editor.get(overview(row)))
    seconds = int(SpreadOffset(row.pk, timedelta(minutes=30)).stable.total_seconds())
    exact = f"{seconds // 60} min {seconds % 60} s".removeprefix("0 min ").removesuffix(" 0 s")
    assert f"Spread over 30 min: this schedule starts {exact} after each time." in page
    assert "All missed runs are caught up that are at most 2 h old, the newest 7 of them." in page
    assert "It runs from 2026-01-01 08:00:00 CET until 2999-12-31 23:59:00 CET." in page
    start = row.next_run_at
    assert start is not None
    assert f"starts at 08:{start:%M:%S}" in page
    # The form shows what was stored, and a copy of it, too.
    for address in (change(row), f"{ADD}?copy={row.pk}"):
        shown = editor.get(address).context["adminform"].form
        assert shown["spread_seconds"].value() == "30m"
        assert shown["active_from"].value() == datetime(2026, 1, 1, 8)
    assert editor.get(change(row)).content.decode().count(f'name="previewed" value="{row.pk}"') == 1


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"spread_seconds": "25h"}, "spread_seconds"),
        ({"spread_seconds": "soon"}, "spread_seconds"),
        ({"missed_runs": "all", "missed_cap": "0"}, "missed_cap"),
        ({"active_from_0": "2030-01-01", "active_from_1": "08:00", "active_until_0": "2029-01-01",
          "active_until_1": "08:00"}, "active_until"),
        ({"active_from_0": "2030-01-01"}, "active_from"),
        ({"stay_alive": "on", "spread_seconds": "30m"}, "spread_seconds"),
        ({"on_excluded": "wait"}, "on_excluded"),
    ],
)  # fmt: skip
def test_a_rule_that_cannot_be_used_is_refused_at_its_field(editor: Client, values: dict[str, str], field: str) -> None:
    response = editor.post(ADD, form(worker=worker(), **values))
    assert response.status_code == 200
    assert field in response.context["adminform"].form.errors


def test_the_preview_shows_nominal_and_assigned_times_and_refusals(editor: Client) -> None:
    address = reverse("admin:scheduling_scheduler_preview", args=["runs"])
    typed = {"schedule": "0 8 * * *", "timezone": "UTC", "spread_seconds": "30m", "previewed": "7"}
    page = text(editor.get(address, typed))
    seconds = int(SpreadOffset(7, timedelta(minutes=30)).stable.total_seconds())
    assert f"starts at 08:{seconds // 60:02}:{seconds % 60:02}" in page
    assert "Its offset is chosen when it is saved" in text(editor.get(address, {**typed, "previewed": ""}))
    assert "1 to 86400" in text(editor.get(address, {**typed, "spread_seconds": "2d"}))
    assert "Spread: " in text(editor.get(address, {**typed, "spread_seconds": "x"}))
    bounded = {**typed, "active_until_0": "2001-01-01", "active_until_1": "08:00"}
    page = editor.get(address, bounded)
    assert "It has ended: it was active until 2001-01-01 08:00:00 UTC." in text(page)
    assert "It has no run to come." in text(page)
    assert "sch-note-warn" not in page.content.decode()


def test_the_list_and_the_page_of_a_schedule_that_has_ended_say_so(editor: Client) -> None:
    row = SchedulerFactory(active_until=clock.now() + timedelta(seconds=1))
    assert ">ended<" in editor.get(reverse("admin:scheduling_scheduler_changelist")).content.decode()
    assert ">ended<" in editor.get(reverse("admin:scheduling_scheduler_change", args=[row.pk])).content.decode()
    found = editor.get(reverse("admin:scheduling_scheduler_changelist"), {"health": "ended"}).context["cl"].result_list
    assert [one.pk for one in found] == [row.pk]


def test_excluded_and_held_times_stand_in_the_preview_with_their_reason(
    editor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = SchedulerFactory(schedule="0 8 * * *", timezone="UTC")
    first = (clock.now() + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    windows = [Window(first + timedelta(days=1), first + timedelta(days=3, hours=9), "<b>Holiday")]

    def excluded(at: datetime) -> Window | None:
        return next((one for one in windows if one.start <= at < one.until), None)

    calendar: Exclusions = excluded
    monkeypatch.setattr(Row, "assigned", lambda self: own_timing.assigned_of(self, calendar))
    Scheduler.objects.filter(pk=row.pk).update(next_nominal_at=row.next_run_at)
    page = text(editor.get(overview(row)))
    assert "3 do not run, up to" in page
    assert "<b>Holiday" in page
    Scheduler.objects.filter(pk=row.pk).update(on_excluded="hold")
    page = text(editor.get(overview(row)))
    assert "held: <b>Holiday" in page
    assert "starts at" in page


def test_what_a_resume_catches_up_is_told_before(editor: Client) -> None:
    row = SchedulerFactory(schedule="* * * * *")
    row.status = False
    row.save()
    Scheduler.objects.filter(pk=row.pk).update(paused_at=clock.now() - timedelta(minutes=30), planned_at=None)
    page = text(editor.get(reverse("admin:scheduling_scheduler_resume", args=[row.pk])))
    assert "30 runs fell due during the pause" in page or "31 runs fell due during the pause" in page


def test_what_a_late_schedule_catches_up_is_told_on_its_page(editor: Client) -> None:
    row = SchedulerFactory(schedule="* * * * *", missed_runs="all", missed_cap=5)
    Scheduler.objects.filter(pk=row.pk).update(next_run_at=clock.now() - timedelta(minutes=30), planned_at=None)
    page = text(editor.get(overview(row)))
    assert "As soon as a producer works, 5 runs start" in page
    assert "occurrences are recorded as skipped." in page


def test_an_execution_shows_both_instants(editor: Client) -> None:
    row = SchedulerExecutionFactory(succeeded=True, scheduled_at=NOON, assigned_at=NOON + timedelta(minutes=7))
    page = text(editor.get(reverse("admin:scheduling_schedulerexecution_change", args=[row.pk])))
    assert "Planned start" in page
    assert "its schedule is spread, or a calendar held it" in page


def test_why_knows_the_start_and_the_bounds(editor: Client) -> None:
    start = None
    while start is None or not start.minute:  # the offset is computed from the number of the schedule
        row = SchedulerFactory(schedule="0 8 * * *", timezone="UTC", spread_seconds=3600)
        start = row.next_run_at
    address = reverse("admin:scheduling_scheduler_why", args=[row.pk])
    page = text(editor.get(address, {"at": f"{start:%Y-%m-%d %H:%M}"}))
    assert "because the schedule is spread" in page
    assert f"It starts at {start:%Y-%m-%d %H:%M:%S} UTC." in page
    # Between 08:00 and 09:00, the start is tomorrow: a day before it is not over yet.
    row.spread_seconds, row.active_until = None, start - timedelta(days=2)
    row.save()
    assert "It is not due then: the schedule was active until" in text(
        editor.get(address, {"at": f"{start:%Y-%m-%d} 08:00"})
    )
