"""`manage.py import_celery_beat`: nonsense rows, names that are taken, and imports that meet or fail."""

from __future__ import annotations

import json
import threading
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection, connections
from django.utils import timezone as clock

from scheduling.management.commands import import_celery_beat
from scheduling.models import Scheduler
from scheduling.operations import schedule_import, schedules
from scheduling.operations.actor import Actor
from scheduling.operations.refused import Refused
from tests.moving.beat_rows import FUTURE, Beat, do_import, found, made, why
from tests.moving.calls import imported


def test_rows_that_cannot_be_said_are_listed_and_the_others_go_on(rows: Beat) -> None:
    models, past = rows.models, clock.now() - timedelta(days=3)
    solar = models.SolarSchedule.objects.create(event="sunrise", latitude=40, longitude=-3)
    listed = {
        "It runs by the sun": rows.task("sun", solar=solar),
        "No handler has the name “proj.x”": rows.task("unknown", "proj.x"),
        "arguments without names": rows.task("args", args="[1]"),
        "Its kwargs are not JSON": rows.task("json", kwargs="{'a': 1}"),
        "Its args are JSON, but not": rows.task("object", args='{"a": 1}'),
        "params": rows.task("params", "tests.noop", kwargs='{"unknown": 1}'),
        "Its headers are not JSON": rows.task("headers", headers="{"),
        "It has expired": rows.task("expired", expires=past),
        "It was to run once, and has run": rows.task("ran", one_off=True, total_run_count=1),
        "Its time has passed": rows.task("past", clocked=rows.at(past), one_off=True),
        "expires before its clocked time": rows.task(
            "late", clocked=rows.at(FUTURE), expires=FUTURE - timedelta(days=1), one_off=True
        ),
        "start time is later": rows.task(
            "early", clocked=rows.at(FUTURE), start_time=FUTURE + timedelta(days=1), one_off=True
        ),
        "The end lies before the beginning": rows.task("ends", start_time=FUTURE, expires=FUTURE - timedelta(days=9)),
        "Hour: '24' is outside 0-23": rows.task("hour", crontab=rows.crontab("0 24 * * *")),
        "Minute: 'x' is no number": rows.task("minute", crontab=rows.crontab("x 0 * * *")),
        "It has 0 schedules": rows.task("none"),
        "It has 2 schedules": rows.task("both"),
        "'Mars/Base' is not an IANA time zone": rows.task("zone"),
        "start_within_seconds": rows.task("zero", expire_seconds=0),
    }
    interval = rows.every(1, "hours")
    models.PeriodicTask.objects.filter(name="both").update(interval=interval)
    models.PeriodicTask.objects.filter(name="none").update(crontab=None)
    with connection.cursor() as cursor:
        table = models.CrontabSchedule._meta.db_table
        zone = models.PeriodicTask.objects.get(name="zone").crontab_id
        cursor.execute(f"UPDATE {table} SET timezone = 'Mars/Base' WHERE id = %s", [zone])
    rows.task("last")
    document = do_import().json
    for said, task in listed.items():
        assert said in why(document, task), task.name
    assert (document["made"], document["listed"], made()) == (1, len(listed), 1)
    assert found("last").schedule == "0 8 * * *"


@pytest.mark.skipif(connection.vendor != "sqlite", reason="only SQLite stores a text in a column of numbers")
@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("expire_seconds", "soon", "expire_seconds has no number: 'soon'"),
        ("total_run_count", "many", "total_run_count has no number"),
        ("start_time", "2026-13-45 25:00:00", "Its row cannot be read"),
        ("crontab_id", "x", "Its crontab schedule is missing"),
        ("crontab_id", "99999", "Its crontab schedule is missing"),
    ],
)
def test_a_text_where_a_number_belongs_is_listed(rows: Beat, column: str, value: str, said: str) -> None:
    task = rows.task("nonsense", one_off=True)
    rows.task("fine")
    with connection.constraint_checks_disabled(), connection.cursor() as cursor:
        cursor.execute("PRAGMA ignore_check_constraints = ON")
        cursor.execute(f"UPDATE django_celery_beat_periodictask SET {column} = %s WHERE id = %s", [value, task.pk])
        cursor.execute("PRAGMA ignore_check_constraints = OFF")
        document = do_import().json
        cursor.execute("DELETE FROM django_celery_beat_periodictask")
    assert said in why(document, task)
    assert found("fine").schedule == "0 8 * * *"


def test_a_name_that_is_taken_is_listed(rows: Beat, beat_root: Any) -> None:
    schedules.make(Actor(beat_root), {"name": "taken", "schedule": "0 9 * * *", "worker": "tests.noop"})
    task, twin = rows.task("taken"), rows.task("Other")
    rows.task(f"other-{twin.pk}")
    document = do_import().json
    assert "A schedule has this name and differs in: schedule. It stays as it is" in why(document, task)
    assert found("taken").schedule == "0 9 * * *"
    assert sum(item["listed"] for item in document["items"]) == 2
    assert Scheduler.objects.filter(name=f"other-{twin.pk}").count() == 1


def test_two_imports_at_once_make_each_schedule_once(rows: Beat, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        rows.task(f"t{number}")
    meeting, ends = threading.Barrier(2, timeout=60), list[Any]()
    carry_out = import_celery_beat.carry_out

    def met(*arguments: Any) -> None:
        meeting.wait()  # both have found all names free
        carry_out(*arguments)

    monkeypatch.setattr(import_celery_beat, "carry_out", met)

    def work() -> None:
        try:
            ends.append(imported("import_celery_beat", "--json").json)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=work) for _number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert sorted((one["made"], one["there"]) for one in ends) == [(0, 6), (6, 0)]
    assert made() == 6


def test_nothing_is_half_imported(rows: Beat, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(3):
        rows.task(f"t{number}")
    make, count = schedules.make, 0

    def third_fails(*arguments: Any, **options: Any) -> Any:
        nonlocal count
        count += 1
        if count == 3:
            raise Refused.value("params", "The permission was taken away.")
        return make(*arguments, **options)

    monkeypatch.setattr(schedule_import.schedules, "make", third_fails)
    ended = imported("import_celery_beat", "--json")
    assert (ended.code, json.loads(ended.out)["kind"]) == (4, "refused")
    assert (count, made()) == (3, 0)


def test_a_handler_that_does_not_exist_is_refused_at_once(rows: Beat) -> None:
    rows.task("a")
    ended = imported("import_celery_beat", "--map", "a=worker:tests.none")
    assert (ended.code, made()) == (4, 0)
    assert "There is no handler “worker:tests.none”." in ended.err


def test_what_the_database_refuses_for_another_reason_is_not_told_as_there(
    rows: Beat, beat_root: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows.task("refused")

    def save(*_arguments: Any, **_options: Any) -> None:
        raise IntegrityError("a foreign key")

    monkeypatch.setattr(Scheduler, "save", save)
    done = do_import()
    assert "The database has refused the schedule “refused”. Nothing was made." in done.err
    assert made() == 0
