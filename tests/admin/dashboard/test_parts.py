"""Each part of the dashboard shows the right numbers and escapes hostile text."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone as clock

from scheduling.admin.dashboard import heatmap, timeline
from scheduling.admin.ui.links import execution_url
from scheduling.models import Scheduler
from scheduling.models.visibility import EVERYTHING
from tests.admin.dashboard.conftest import PAGE, address
from tests.factories import ProcessFactory, SchedulerExecutionFactory, SchedulerFactory, WorkerFactory, due

Context = Callable[[str], dict[str, Any]]

HOSTILE = "<script>alert(1)</script>\"'&\u202eevil\x1b[31m"
HEAT_MAP = "Executions of the last 7 days by hour"


def tile(context: Context, name: str) -> Any:
    return next(SimpleNamespace(**tile) for tile in context("tiles")["tiles"] if tile["name"] == name)


def test_tiles_show_counts_and_link_to_pages(context: Context, viewer: Client) -> None:
    row = SchedulerFactory()
    for trait, number in (("claimed", 1), ("running", 2), ("retrying", 3), ("failed", 4), ("succeeded", 5)):
        for _each in range(number):
            SchedulerExecutionFactory(scheduler=row, **{trait: True})
    SchedulerExecutionFactory(scheduler=row)
    counts = {tile["name"]: str(tile["value"]) for tile in context("tiles")["tiles"]}
    assert counts | {"Lag, p95": ""} == {
        "Queued": "2", "Running": "2", "Retrying": "3", "Failed": "4", "Producers": "0", "Consumers": "0",
        "Lag, p95": "",
    }  # fmt: skip
    assert context("tiles")["said"] == "2 queued, 2 running, 3 retrying, 4 failed"
    for tile in context("tiles")["tiles"]:
        assert viewer.get(tile["address"]).status_code == 200, tile["name"]


def test_failed_is_red_with_the_age_of_the_oldest(context: Context) -> None:
    assert tile(context, "Failed").tone == "good"
    SchedulerExecutionFactory(failed=True, finished_at=clock.now() - timedelta(hours=3))
    SchedulerExecutionFactory(failed=True)
    found = tile(context, "Failed")
    assert (found.tone, found.note) == ("bad", "The oldest: 3 h ago")


def test_processes_are_alive_or_silent(context: Context) -> None:
    ProcessFactory(producer=True)
    ProcessFactory()
    ProcessFactory(silent=True)
    assert (tile(context, "Producers").note, tile(context, "Producers").tone) == ("1 alive", "good")
    assert (tile(context, "Consumers").note, tile(context, "Consumers").tone) == (
        "1 alive; 1 more silent for 10 min",
        "warn",
    )


def test_lag_counts_only_first_attempts_of_the_last_hour(context: Context) -> None:
    now = clock.now()
    for lag in range(1, 21):
        SchedulerExecutionFactory(succeeded=True, scheduled_at=now - timedelta(seconds=60 + lag),
                                  started_at=now - timedelta(seconds=60))  # fmt: skip
    SchedulerExecutionFactory(succeeded=True, attempt=3, scheduled_at=now - timedelta(hours=9), started_at=now)
    SchedulerExecutionFactory(succeeded=True, scheduled_at=now - timedelta(hours=9),
                              started_at=now - timedelta(hours=2))  # fmt: skip
    assert tile(context, "Lag, p95").value == "19 s"


def test_heat_map_shows_the_worst_state_of_each_hour_and_links_to_it(context: Context, viewer: Client) -> None:
    hour = clock.now().replace(minute=0, second=0, microsecond=0)
    for back, trait in ((30, "succeeded"), (30, "failed"), (29, "succeeded"), (2, "skipped"), (2, "succeeded")):
        SchedulerExecutionFactory(**{trait: True}, executed_at=hour - timedelta(hours=back) + timedelta(minutes=10))
    picture = str(context("heatmap")["picture"])
    assert [picture.count(f"dash-cell dash-{tone}") for tone in ("bad", "good", "warn", "off")] == [1, 1, 1, 0]
    assert "1 failed, 1 succeeded" in picture
    assert "1 skipped, 1 succeeded" in picture
    page = viewer.get(address("heatmap")).content.decode()
    link = next(part.split('"')[0] for part in page.split('href="') if "state=failed" in part.split('"')[0])
    response = viewer.get(link.replace("&amp;", "&"))
    assert [row.state for row in response.context["cl"].result_list] == ["failed"]


def test_schedules_show_their_last_thirty_runs(context: Context) -> None:
    row, now = SchedulerFactory(), clock.now()
    for number in range(40):
        failed = number >= 37
        SchedulerExecutionFactory(
            scheduler=row, **{"failed" if failed else "succeeded": True},
            started_at=now - timedelta(seconds=number + 1), finished_at=now,
        )  # fmt: skip
    SchedulerExecutionFactory(scheduler=SchedulerFactory(), skipped=True)
    line = next(entry for entry in context("schedules")["lines"] if entry["pk"] == row.pk)
    assert line["bars"].count("<rect") == 30
    assert line["bars"].count("dash-is-failed") == 3
    assert (line["rate"], line["p50"], line["p95"]) == ("90 %", "24 s", "36 s")
    other = next(entry for entry in context("schedules")["lines"] if entry["pk"] != row.pk and entry["last_address"])
    assert "dash-is-skipped" in other["bars"]


def test_schedules_are_paged_and_the_paused_come_last(context: Context, viewer: Client) -> None:
    for _number in range(25):
        SchedulerFactory()
    paused = SchedulerFactory(off=True)
    assert len(context("schedules")["lines"]) == 20
    second = viewer.get(PAGE, {"p": "2"})
    assert second.context["parts"]["schedules"]["lines"][-1]["pk"] == paused.pk
    assert second.context["parts"]["schedules"]["address"].endswith("?p=2")
    assert viewer.get(PAGE, {"p": "nonsense"}).status_code == 200


def test_a_running_execution_is_compared_with_the_usual_duration(context: Context) -> None:
    row, now = SchedulerFactory(), clock.now()
    for _number in range(20):
        SchedulerExecutionFactory(
            scheduler=row, succeeded=True, started_at=now - timedelta(seconds=10), finished_at=now
        )
    SchedulerExecutionFactory(scheduler=row, running=True, progress="3/10 parts")
    [line] = context("running")["lines"]
    assert (line["usual"], line["late"], line["progress"]) == ("10 s", True, "3/10 parts")


@pytest.mark.django_db
def test_timeline_shows_the_next_hour_in_order_up_to_its_limit() -> None:
    now = datetime(2026, 3, 10, 12, 0, 30, tzinfo=UTC)
    each_minute, hourly = SchedulerFactory(schedule="* * * * *"), SchedulerFactory(schedule="30 * * * *")
    Scheduler.objects.exclude(pk__in=[each_minute.pk, hourly.pk]).update(next_run_at=None)
    Scheduler.objects.filter(pk=each_minute.pk).update(next_run_at=now + timedelta(seconds=30))
    Scheduler.objects.filter(pk=hourly.pk).update(next_run_at=now + timedelta(minutes=29, seconds=30))
    runs, more = timeline.upcoming_runs(EVERYTHING, now)
    assert (len(runs), more) == (61, False)
    assert [run.instant for run in runs] == sorted(run.instant for run in runs)
    for _number in range(9):
        SchedulerFactory(schedule="* * * * *")
    Scheduler.objects.filter(schedule="* * * * *").update(next_run_at=now + timedelta(seconds=30))
    runs, more = timeline.upcoming_runs(EVERYTHING, now)
    assert (len(runs), more) == (200, True)


@pytest.mark.django_db
def test_timeline_and_next_day_know_intervals(context: Context) -> None:
    row = SchedulerFactory(schedule="@every 20m from 2026-01-05T00:00Z")
    Scheduler.objects.exclude(pk=row.pk).update(next_run_at=None)
    runs, more = timeline.upcoming_runs(EVERYTHING, row.next_run_at - timedelta(seconds=1))
    assert ([run.instant - row.next_run_at for run in runs], more) == (
        [timedelta(minutes=20 * number) for number in range(3)], False,
    )  # fmt: skip
    assert context("next_day")["total"] in (72, 73)


def test_an_empty_site_shows_the_first_three_steps(viewer: Client, editor: Client) -> None:
    page = viewer.get(PAGE).content.decode()
    assert "Your first schedule" in page
    assert "/admin/scheduling/scheduler/add/" not in page
    assert "/admin/scheduling/scheduler/add/" in editor.get(address("schedules")).content.decode()
    SchedulerFactory()
    assert "Your first schedule" not in viewer.get(PAGE).content.decode()


def test_hostile_text_is_shown_as_text(editor: Client) -> None:
    worker = WorkerFactory(name="<b>gone</b>")
    row = SchedulerFactory(description=HOSTILE, schedule="* * * * *", worker=worker)
    Scheduler.objects.filter(pk=row.pk).update(plan_error=HOSTILE, timezone="<i>zone")
    SchedulerExecutionFactory(scheduler=row, running=True, progress=HOSTILE[:60], target_name=HOSTILE, consumer=HOSTILE)
    for _number in range(3):
        SchedulerExecutionFactory(scheduler=row, failed=True, target_name=HOSTILE)
    ProcessFactory(silent=True, container_id=HOSTILE)
    page = editor.get(PAGE).content.decode()
    for raw in ("<script>alert", "<b>gone", "<i>zone", "\u202e", "\x1b"):
        assert raw not in page, raw
    assert "&lt;script&gt;alert" in page
    assert "style=" not in page[page.index('id="content-main"') :]


def test_the_number_of_queries_does_not_grow_with_the_rows(viewer: Client, django_assert_max_num_queries: Any) -> None:
    for _number in range(20):
        row = SchedulerFactory(schedule="*/7 * * * *")
        for trait in ("succeeded", "failed", "running"):
            SchedulerExecutionFactory(scheduler=row, **{trait: True})
    viewer.get(address("heatmap"))  # this process keeps its counts for a minute
    # Sixty executions fail, run and wait here. A superuser at a calm installation needs twenty.
    with django_assert_max_num_queries(40, connection=connection):
        viewer.get(PAGE)


def test_a_calm_dashboard_makes_at_most_twenty_queries(editor: Client, django_assert_max_num_queries: Any) -> None:
    ProcessFactory(producer=True)
    ProcessFactory()
    for _number in range(21):
        SchedulerExecutionFactory(scheduler=due(SchedulerFactory(), clock.now() + timedelta(hours=1)), succeeded=True)
    with django_assert_max_num_queries(20, connection=connection):
        assert HEAT_MAP not in editor.get(PAGE).content.decode()  # it is fetched after the page
    editor.get(address("heatmap"))
    with django_assert_max_num_queries(20, connection=connection):
        assert HEAT_MAP in editor.get(PAGE).content.decode()


def test_the_heat_map_keeps_its_counts_for_a_minute(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now)
    SchedulerExecutionFactory(succeeded=True, executed_at=now)
    assert "dash-bad" not in str(context("heatmap")["picture"])
    SchedulerExecutionFactory(failed=True, executed_at=now)
    kept = str(context("heatmap")["picture"])
    monkeypatch.setattr(clock, "now", lambda: now + timedelta(seconds=heatmap.KEPT_SECONDS))
    assert "dash-bad" not in kept
    assert "dash-bad" in str(context("heatmap")["picture"])


def test_the_last_result_of_a_schedule_is_not_a_row_that_a_pause_left(context: Context) -> None:
    row = SchedulerFactory()
    good = SchedulerExecutionFactory(scheduler=row, succeeded=True)
    SchedulerExecutionFactory(
        scheduler=row, skipped=True, reason="Paused from 2026-03-10 12:00 to 12:35 UTC. 3 occurrences did not run."
    )
    (line,) = context("schedules")["lines"]
    assert ("healthy" in line["health"], "succeeded" in line["last"]) == (True, True)
    assert line["last_address"] == execution_url(good.pk)
    assert line["bars"].count("<rect") == 2
