"""`manage.py audit_occurrences` finds injected gaps and doubles by name, and nothing else."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.core.management import call_command
from django.utils import timezone as clock

from scheduling.core.occurrences import cron_key
from scheduling.execution.claim import claim_due
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.producer.sweeps import plan_stale
from tests.factories import SchedulerFactory
from tests.hostile.fuzz import choose_seed
from tests.support import NOON

pytestmark = pytest.mark.django_db

MINUTE = timedelta(minutes=1)


def audit(*arguments: str) -> Any:
    """The JSON document of the command, and whether it has found a fault."""
    out, code = io.StringIO(), 0
    try:
        call_command("audit_occurrences", "--json", *arguments, stdout=out)
    except SystemExit as end:
        code = int(end.code or 0)
    found = json.loads(out.getvalue())
    assert code == int(bool(found["gaps"] + found["doubles"]))
    return found


@pytest.fixture
def travel() -> Iterator[Any]:
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


def claim(traveller: Any, until: datetime, step: timedelta = MINUTE) -> None:
    """Let a producer work from now until an instant."""
    while (now := clock.now()) < until:
        traveller.move_to(min(now + step, until))
        plan_stale(clock.now())
        while claim_due(clock.now(), embedded=True).full:
            pass
        SchedulerExecution.objects.filter(state="queued").update(state="succeeded", finished_at=clock.now())


def test_a_day_with_edits_pauses_and_a_downtime_has_no_fault_until_some_are_made(travel: Any) -> None:
    generator = random.Random(choose_seed())
    minutely = SchedulerFactory(schedule="* * * * *", description="minutely")
    alone = SchedulerFactory(schedule="*/2 * * * *", overlap="skip", description="alone")
    once = SchedulerFactory(schedule="", date_time=NOON + 50 * MINUTE, description="once")
    edited = SchedulerFactory(schedule="*/3 * * * *", description="edited")
    claim(travel, NOON + 20 * MINUTE)
    # An edit, a pause, and a change by plain SQL.
    row = Scheduler.objects.get(pk=edited.pk)
    row.schedule, row.timezone = "*/5 * * * *", "Europe/Madrid"
    row.save()
    row = Scheduler.objects.get(pk=minutely.pk)
    row.status = False
    row.save()
    claim(travel, NOON + 31 * MINUTE)
    row = Scheduler.objects.get(pk=minutely.pk)
    row.status = True
    row.save()
    Scheduler.objects.filter(pk=edited.pk).update(schedule="*/4 * * * *")
    claim(travel, NOON + 45 * MINUTE)
    # No producer for twenty minutes, in which schedules are edited, too.
    travel.move_to(NOON + 55 * MINUTE + timedelta(seconds=30))
    row = Scheduler.objects.get(pk=edited.pk)
    row.schedule = "*/3 * * * *"
    row.save()
    Scheduler.objects.filter(pk=minutely.pk).update(schedule="*/2 * * * *")
    travel.move_to(NOON + 65 * MINUTE)
    claim(travel, NOON + 90 * MINUTE)
    # A run that is not over: its skipped row counts what it leaves out, also after a downtime.
    SchedulerExecution.objects.filter(scheduler=alone.pk).order_by("-pk").first()
    open_run = SchedulerExecution.objects.filter(scheduler=alone.pk).exclude(state="skipped").order_by("-pk")[0]
    SchedulerExecution.objects.filter(pk=open_run.pk).update(state="running", finished_at=None)
    claim(travel, NOON + 100 * MINUTE)
    travel.move_to(NOON + 110 * MINUTE)
    claim(travel, NOON + 120 * MINUTE)
    SchedulerExecution.objects.filter(pk=open_run.pk).update(state="succeeded", finished_at=clock.now())
    claim(travel, NOON + 140 * MINUTE)

    found = audit()
    assert (found["gaps"], found["doubles"], found["faults"]) == (0, 0, [])
    assert found["executions"] > 150
    assert found["due"] > 150
    assert audit("--from", "2026-03-10T12:10Z", "--until", "2026-03-10T12:15Z")["due"] == 5 + 2 + 2

    rows = SchedulerExecution.objects.filter(missed=0, state="succeeded", scheduled_at__gt=NOON + 67 * MINUTE)
    chosen = generator.sample(list(rows.filter(scheduler__in=[minutely.pk, edited.pk])), 10)
    gone, twice, strange = chosen[:4], chosen[4:7], chosen[7:]
    for execution in twice:
        _copy(execution, execution.scheduled_at)
    for execution in strange:
        _copy(execution, execution.scheduled_at + timedelta(seconds=17))
    SchedulerExecution.objects.filter(pk__in=[execution.pk for execution in gone]).delete()
    counted = SchedulerExecution.objects.filter(missed__gt=3, reason__startswith="Paused").get()
    _copy(counted, counted.scheduled_at + 2 * MINUTE)
    assert once.pk  # its one run is on record
    SchedulerExecution.objects.filter(scheduler=once.pk).delete()

    found = audit()
    wanted = {("gap", _text(one.scheduled_at), one.scheduler_id) for one in gone}
    wanted |= {("twice", _text(one.scheduled_at), one.scheduler_id) for one in twice}
    wanted |= {("not_due", _text(one.scheduled_at + timedelta(seconds=17)), one.scheduler_id) for one in strange}
    wanted |= {("counted", _text(counted.scheduled_at + 2 * MINUTE), minutely.pk)}
    wanted |= {("gap", _text(NOON + 50 * MINUTE), once.pk)}
    assert {(one["fault"], one["at"], one["schedule"]) for one in found["faults"]} == wanted
    assert (found["gaps"], found["doubles"]) == (5, 7)
    assert all(len(one["executions"]) == {"gap": 0, "twice": 2}.get(one["fault"], 1) for one in found["faults"])


def _text(instant: datetime) -> str:
    return instant.isoformat().replace("+00:00", "Z")


def _copy(row: SchedulerExecution, at: datetime) -> None:
    """Store another execution of the same schedule, as a defect of a producer would."""
    values = SchedulerExecution.objects.filter(pk=row.pk).values().get()
    own = {**values, "id": None, "execution_key": f"{cron_key(at)}-again", "scheduled_at": at, "missed": 0}
    SchedulerExecution.objects.create(**own)


@pytest.mark.any_database
def test_what_a_pause_has_left_out_is_counted_by_the_former_times(travel: Any) -> None:
    """Plain SQL ends the pause and changes the times in one statement."""
    row = SchedulerFactory(schedule="* * * * *")
    claim(travel, NOON + 5 * MINUTE)
    row = Scheduler.objects.get(pk=row.pk)
    row.status = False
    row.save()
    claim(travel, NOON + 15 * MINUTE)
    Scheduler.objects.filter(pk=row.pk).update(status=True, schedule="*/7 * * * *")
    claim(travel, NOON + 45 * MINUTE)
    assert SchedulerExecution.objects.filter(scheduler=row.pk, missed__gt=5).count() == 1
    assert audit()["faults"] == []


@pytest.mark.any_database
def test_what_cannot_be_known_is_no_gap(travel: Any, settings: Any) -> None:
    row = SchedulerFactory(schedule="0 * * * *", keep_success_days=2)
    claim(travel, NOON + timedelta(days=4), timedelta(hours=1))
    rows = SchedulerExecution.objects.filter(scheduler=row.pk)
    rows.filter(scheduled_at__lt=NOON + timedelta(days=2)).delete()
    found = audit("--from", "2026-03-10T12:00Z")
    assert (found["gaps"], found["doubles"]) == (0, 0)
    assert [note["known_from"] for note in found["notes"] if note["schedule"] == row.pk] == ["2026-03-12T12:00:00Z"]
    Scheduler.objects.filter(pk=row.pk).update(keep_success_days=None)
    plan_stale(clock.now())
    rows.filter(scheduled_at__gt=NOON + timedelta(days=3), scheduled_at__lt=NOON + timedelta(days=3, hours=3)).delete()
    assert audit()["gaps"] == 2
    Scheduler.objects.filter(pk=row.pk).update(keep_count=10)
    assert audit()["gaps"] == 0
    # What no producer has claimed yet is no gap, and a schedule without a revision has no due instants.
    travel.move_to(NOON + timedelta(days=5))
    assert audit()["gaps"] == 0


@pytest.mark.any_database
def test_runs_that_were_asked_for_are_no_occurrences(travel: Any) -> None:
    row = SchedulerFactory(schedule="0 * * * *")
    claim(travel, NOON + timedelta(hours=3), timedelta(hours=1))
    values = SchedulerExecution.objects.filter(scheduler=row.pk).values().first() or {}
    for trigger in ("manual", "message", "code"):
        own = {**values, "id": None, "execution_key": trigger, "trigger": trigger}
        SchedulerExecution.objects.create(**{**own, "scheduled_at": NOON + 5 * MINUTE})
    found = audit("--schedule", str(row.pk))
    assert (found["schedules"], found["due"], found["gaps"], found["doubles"]) == (1, 3, 0, 0)


@pytest.mark.any_database
def test_a_row_that_cannot_be_read_is_a_note(travel: Any) -> None:
    row = SchedulerFactory(schedule="0 * * * *")
    claim(travel, NOON + timedelta(hours=3), timedelta(hours=1))
    Scheduler.objects.filter(pk=row.pk).update(schedule="nonsense")
    claim(travel, NOON + timedelta(hours=6), timedelta(hours=1))
    found = audit()
    assert (found["gaps"], found["doubles"]) == (0, 0)
    assert any("set aside" in note["note"] for note in found["notes"])
