"""`manage.py import_celery_beat`: what becomes of the columns of a task."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import override_settings
from django.utils import timezone as clock

from scheduling.core.due_between import due_between
from scheduling.models import Scheduler
from tests.moving.beat_clock import beat_runs
from tests.moving.beat_rows import FUTURE, Beat, do_import, found, made, why
from tests.moving.calls import imported


@pytest.mark.django_db
def test_a_database_without_beat_is_refused(root: Any) -> None:
    refused = imported("import_celery_beat")
    assert refused.code == 3
    assert "has no table django_celery_beat_periodictask" in refused.err
    assert imported("import_celery_beat", "--database", "other").code == 4
    with override_settings(DJANGO_CELERY_BEAT_TZ_AWARE=False):
        assert "does not heed the zones" in imported("import_celery_beat").err


def test_the_columns_of_a_task(rows: Beat) -> None:
    rows.task(
        "full", "tests.give", crontab=rows.crontab("30 2 * * 1-5", "Europe/Madrid"), kwargs='{"value": 7}',
        start_time=FUTURE, expires=FUTURE + timedelta(days=90), one_off=True, queue="low", priority=3,
        headers='{"a": 1}',
    )  # fmt: skip
    rows.task("deadline", expire_seconds=600, enabled=False)
    rows.task("once", clocked=rows.at(FUTURE), one_off=True)
    with_report = rows.task("A report: größer", "proj.report")
    document = do_import("--map", "proj.report=tests.noop").json
    full = found("full")
    assert (full.schedule, full.timezone, full.worker and full.worker.name) == (
        "30 2 * * 1-5",
        "Europe/Madrid",
        "tests.give",
    )
    assert (full.params, full.max_runs, full.active_from) == ({"value": 7}, 1, FUTURE)
    assert full.active_until == FUTURE + timedelta(days=90) - timedelta(seconds=1)
    notes = document["items"][0]["notes"]
    assert [note.split(" is ")[0].split(" are ")[0] for note in notes] == ["Its queue", "Its priority", "Its headers"]
    deadline = found("deadline")
    assert (deadline.start_within_seconds, deadline.status) == (600, False)
    assert deadline.pause_reason == "It was disabled in Celery beat."
    assert (found("once").date_time, found("once").schedule) == (FUTURE, "")
    assert found(f"a-report-groer-{with_report.pk}").description.startswith("A report: größer (Celery beat, task ")


def test_schedules_are_made_paused_and_a_dry_run_makes_none(rows: Beat) -> None:
    rows.task("a")
    rows.task("b", enabled=False)
    dry = imported("import_celery_beat", "--dry-run", "--paused")
    assert (dry.code, made()) == (0, 0)
    assert "0 8 * * * UTC → tests.noop (paused)" in dry.out
    assert "To make: 2." in dry.out
    do_import("--paused")
    assert [found(name).status for name in "ab"] == [False, False]
    assert found("a").pause_reason != found("b").pause_reason


def test_a_task_with_both_day_fields_becomes_several_schedules_or_none(rows: Beat) -> None:
    rows.task("two", crontab=rows.crontab("0 8 1,8-14 * 1"))
    thirteenth = rows.task("thirteenth", crontab=rows.crontab("0 8 13 * 5"))
    once = rows.task("once", crontab=rows.crontab("0 8 1,8-14 * 1"), one_off=True)
    document = do_import().json
    assert [found(name).schedule for name in ("two", "two-p2")] == ["0 8 */31 * 1", "0 8 * * 1#2"]
    assert "both a day of the month (13) and a weekday (5)" in why(document, thirteenth)
    assert why(document, once) == "It runs once, but its times need several schedules."
    assert (document["made"], document["listed"]) == (2, 2)


def test_the_clock_changes_that_differ_are_told_or_refused(rows: Beat) -> None:
    task = rows.task("night", crontab=rows.crontab("30 2 * * *", "Europe/Madrid"))
    rows.task("often", crontab=rows.crontab("*/20 * * * *", "Europe/Madrid"))
    document = do_import("--dry-run").json
    assert [bool(item["only_here"]) for item in document["items"]] == [True, True]
    assert "Only here, it runs at: " in document["items"][0]["notes"][0]
    exact = do_import("--exact").json
    assert "Its instants differ from those of Celery beat. Only here" in why(exact, task)
    assert found("often").schedule == "0-59/20 0-23 * * *"


def test_intervals_go_on_from_the_last_run(rows: Beat) -> None:
    last = clock.now().replace(second=17, microsecond=5)
    rows.task("minutes", interval=rows.every(90, "minutes"), last_run_at=last)
    rows.task("days", interval=rows.every(2, "days"), start_time=FUTURE)
    seconds = rows.task("seconds", interval=rows.every(10, "seconds"))
    micro = rows.task("micro", interval=rows.every(10, "microseconds"))
    document = do_import().json
    assert found("minutes").schedule == f"@every 1h30m from {last:%Y-%m-%dT%H:%M}Z"
    assert document["items"][0]["notes"] == [
        "It begins at a full minute, 17 s earlier than with beat. CRON_SECONDS keeps the second."
    ]
    assert found("days").schedule == "@every 48h from 2035-03-29T10:30Z"
    assert "The setting CRON_SECONDS allows it" in why(document, seconds)
    assert "counted in whole seconds at least" in why(document, micro)
    Scheduler.objects.filter(name="minutes").delete()
    assert "17 s earlier" in why(do_import("--exact").json, rows.models.PeriodicTask.objects.get(name="minutes"))
    with override_settings(CRON_SECONDS=True):
        do_import()
        assert found("minutes").schedule == f"@every 1h30m from {last:%Y-%m-%dT%H:%M:%S}Z"
        assert found("seconds").schedule.startswith("@every 10s from ")


@pytest.mark.parametrize("seconds", [False, True], ids=["minutes", "seconds"])
def test_the_first_run_of_an_interval_is_at_its_start_time(rows: Beat, seconds: bool) -> None:
    start = FUTURE + timedelta(seconds=17, microseconds=123_456)
    bounds = {"start_time": start, "expires": start + timedelta(days=3)}
    task = rows.task("days", interval=rows.every(1, "days"), **bounds)
    hours = rows.task(
        "hours", interval=rows.every(12, "hours"), last_run_at=start - timedelta(hours=6, seconds=-5), **bounds
    )
    with override_settings(CRON_SECONDS=seconds):
        do_import()
    for row in (task, hours):
        beat = list(beat_runs(row, start - timedelta(hours=5), start + timedelta(days=9), 20))
        assert beat[0] >= start
        floors = {"microsecond": 0} if seconds else {"microsecond": 0, "second": 0}
        assert due(found(row.name)) == [one.replace(**floors) for one in beat], row.name
    assert len(due(found("days"))) == 3


def due(row: Scheduler) -> list[datetime]:
    """When the schedule runs, from some days before FUTURE on."""
    state = {"schedule": row.schedule, "date_time": None, **{
        name: value.isoformat() for name in ("active_from", "active_until") if (value := getattr(row, name)) is not None
    }}  # fmt: skip
    return list(due_between(state, row.zone_name, FUTURE - timedelta(days=9), FUTURE + timedelta(days=9)))


def test_an_older_table_without_newer_columns_is_read(rows: Beat) -> None:
    rows.task("old", interval=rows.every(1, "hours"))
    with connection.schema_editor() as editor:
        for name in ("headers", "priority", "expire_seconds"):
            editor.remove_field(rows.models.PeriodicTask, rows.models.PeriodicTask._meta.get_field(name))
    assert do_import().json["made"] == 1


def test_the_second_import_changes_nothing(rows: Beat) -> None:
    rows.task("a")
    task = rows.task("b", interval=rows.every(1, "hours"), last_run_at=clock.now() - timedelta(minutes=9))
    rows.task("c", crontab=rows.crontab("0 8 1,8-14 * 1"))
    assert do_import().code == 0
    before = list(Scheduler.objects.order_by("pk").values())
    task.last_run_at = clock.now()  # beat goes on meanwhile
    task.save()
    again = do_import()
    assert (again.code, again.json["made"], again.json["there"]) == (0, 0, 4)
    assert list(Scheduler.objects.order_by("pk").values()) == before
