"""Two years of a database of Celery beat: each task is imported with the instants of the real package, or listed.

The database is made by a seed, which is printed. `CELERY_BEAT_TASKS=1000` and `CELERY_BEAT_SEED=7` choose another one.

Beat's instants come from the package itself (`beat_clock`), not from its parsed sets: they would not tell what it does
when the clocks change, at a start time, at the end, and with a task that runs once. A task with more than `FULL` runs
in two years is compared in windows instead: from the import on, around each clock change, and at the end. Between them,
the sets of the real `crontab` are compared with ours for each of the days.
"""

from __future__ import annotations

import copy
import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.test import override_settings

from scheduling.core.due_between import due_between
from scheduling.core.timetables import parse
from scheduling.core.zones import clock_changes, zone
from scheduling.models import Scheduler
from tests.moving.beat_clock import beat_runs
from tests.moving.beat_seed import AGE, TASKS, Seeded
from tests.moving.calls import imported

COUNT = int(os.environ.get("CELERY_BEAT_TASKS", "40"))
SEED = int(os.environ.get("CELERY_BEAT_SEED", "19"))
NOW = datetime(2026, 11, 26, 5, 3, 47, tzinfo=UTC)
YEARS = timedelta(days=731)
FULL = 1_500
"""A task with more runs is compared in windows, which have at most so many runs, too."""
_SECOND, _DAY = timedelta(seconds=1), timedelta(days=1)
Span = tuple[datetime, datetime]


@pytest.mark.long
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("exact", [False, True])
@override_settings(CRON_SECONDS=True)
def test_each_task_has_the_instants_of_beat_or_is_listed(beat: Any, beat_root: Any, exact: bool) -> None:
    sys.stdout.write(f"CELERY_BEAT_SEED={SEED} CELERY_BEAT_TASKS={COUNT}\n")
    with time_machine.travel(NOW - AGE, tick=False):
        Seeded(beat, SEED, NOW).make(COUNT)
    options = ["--json", "--map", f"{TASKS[2]}=tests.noop", *(["--exact"] if exact else [])]
    with time_machine.travel(NOW, tick=False):
        report = imported("import_celery_beat", *options).json
    tasks = {f"task {task.pk}": task for task in beat.PeriodicTask.objects.order_by("pk")}
    assert [item["label"] for item in report["items"]] == list(tasks)
    compared = _Compared()
    for item in report["items"]:
        assert bool(item["why"] or any(one["why"] for one in item["schedules"])) == item["listed"]
        if not item["listed"]:
            rows = list(Scheduler.objects.filter(pk__in=[one["id"] for one in item["schedules"]]))
            compared.add(item, tasks[item["label"]], rows)
    assert not compared.wrong, "\n".join(compared.wrong[:40])
    assert report["made"] == compared.schedules
    assert compared.instants > COUNT * 10
    differing = [item for item in report["items"] if item["only_here"] or item["only_there"]]
    assert not (exact and [item for item in differing if not item["listed"]])
    sys.stdout.write(f"{report['made']} made, {report['listed']} listed, {len(differing)} differ, {compared}\n")


class _Compared:
    """Compares tasks with their schedules."""

    def __init__(self) -> None:
        self.tasks = self.schedules = self.instants = self.in_full = 0
        self.wrong: list[str] = []

    def __str__(self) -> str:
        return f"{self.tasks} tasks compared at {self.instants} instants, {self.in_full} of them whole"

    def add(self, item: Any, task: Any, rows: list[Scheduler]) -> None:
        """Compare one task."""
        self.tasks, self.schedules = self.tasks + 1, self.schedules + len(rows)
        known = ({_instant(one) for one in item["only_there"]}, {_instant(one) for one in item["only_here"]})
        spans = self._spans(task)
        for span in spans:
            beat, ours = set(_beat(task, span)), set[datetime]()
            for row in rows:
                own = set(_ours(row, span))
                if ours & own:
                    self.wrong.append(f"{item['text']}: two of its schedules run at once")
                ours |= own
            end = span[1]
            if len(beat) >= FULL and len(ours) >= FULL:  # the rest follows from the last instant
                end = min(max(beat), max(ours))
                beat, ours = ({one for one in some if one <= end} for some in (beat, ours))
            self.instants += len(beat)
            only = tuple({one for one in some if span[0] < one <= end} for some in known)
            if (beat - ours, ours - beat) != only:
                facts = [sorted(map(str, some))[:3] for some in (beat - ours, ours - beat, *only)]
                self.wrong.append(
                    f"{item['text']} {task.scheduler} {[row.schedule for row in rows]} {span[0]}: {facts}"
                )
        if task.crontab and len(spans) > 1:
            self._compare_sets(item, task, rows)

    def _spans(self, task: Any) -> list[Span]:
        end = NOW + YEARS
        if task.clocked or task.one_off or _runs(task) <= FULL:
            self.in_full += 1
            return [(NOW, end)]
        if task.interval:
            return [(NOW, end)]
        changes = clock_changes(zone(str(task.crontab.timezone)), NOW, end)
        around = [(max(NOW, change - _DAY / 2), change + _DAY / 2) for change, _size in changes]
        starts = [at for at in (task.start_time, task.expires) if at is not None and NOW < at < end]
        around += [(max(NOW, at - _DAY), min(at + _DAY, end)) for at in starts]
        return [(NOW, NOW + 2 * _DAY), *around, (end - _DAY, end)]

    def _compare_sets(self, item: Any, task: Any, rows: list[Scheduler]) -> None:
        crontab = task.crontab.schedule
        days = [(NOW + number * _DAY).date() for number in range(YEARS.days + 1)]
        crons: list[Any] = [parse(row.schedule) for row in rows]
        wrong = [cron for cron in crons if set(cron.minutes) != crontab.minute or set(cron.hours) != crontab.hour]
        for day in days:
            found = (
                day.month in crontab.month_of_year
                and day.day in crontab.day_of_month
                and day.isoweekday() % 7 in crontab.day_of_week
            )
            wrong += [day] if sum(cron.first_day(day) == day for cron in crons) != found else []
        if wrong:
            self.wrong.append(f"{item['text']} {task.scheduler}: {wrong[:3]}")


def _runs(task: Any) -> float:
    """About how many runs it has in two years, without its bounds."""
    if task.interval:
        return YEARS.total_seconds() / max(task.interval.schedule.seconds, 1)
    crontab = task.crontab.schedule
    days = len(crontab.day_of_month) / 31 * len(crontab.month_of_year) / 12 * len(crontab.day_of_week) / 7
    return YEARS.days * days * len(crontab.hour) * len(crontab.minute)


def _beat(task: Any, span: Span) -> Iterator[datetime]:
    """The runs of beat in the span. A window that begins later begins with a run that has just been."""
    task, since = copy.copy(task), NOW - AGE
    if span[0] > NOW:
        since = span[0]
        if task.start_time is None or task.start_time <= since:
            task.last_run_at = since
    for at in beat_runs(task, since, span[1], FULL + 10):
        if at > span[0]:
            yield at


def _ours(row: Scheduler, span: Span) -> Iterator[datetime]:
    state = {
        "schedule": row.schedule,
        **{
            name: None if getattr(row, name) is None else getattr(row, name).isoformat()
            for name in ("date_time", "active_from", "active_until")
        },
    }
    for number, at in enumerate(due_between(state, row.zone_name, *span)):
        if number >= (row.max_runs or FULL + 10):
            return
        yield at


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text.replace(" ", "T")).astimezone(UTC)
