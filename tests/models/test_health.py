"""Tests of the health of schedules. The database computes it, so the same cases run on each database."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone as clock

from scheduling.core.health import Health
from scheduling.models import Scheduler
from scheduling.models.health import ORDER, health_of, last_results, with_health
from scheduling.models.visibility import EVERYTHING
from scheduling.monitoring.findings.watched import without_next_run
from tests.factories import CalendarFactory, SchedulerExecutionFactory, SchedulerFactory, due

pytestmark = pytest.mark.django_db

TRAITS = {
    "s": {"succeeded": True}, "f": {"failed": True}, "d": {"discarded": True}, "k": {"skipped": True},
    "c": {"cancelled": True}, "r": {"running": True}, "q": {}, "t": {"retrying": True},
}  # fmt: skip


def health(row: Scheduler) -> Health:
    return health_of(with_health(Scheduler.objects.all(), clock.now()).get(pk=row.pk))


@pytest.mark.parametrize(
    ("runs", "columns", "wanted"),
    [
        ("", {}, Health.NEVER_RAN),
        ("s", {}, Health.HEALTHY),
        ("fs", {}, Health.HEALTHY),
        ("sf", {}, Health.FAILING),
        ("sfr", {}, Health.FAILING),  # a running run does not hide the last failure
        ("sfc", {}, Health.FAILING),  # a cancelled run is no result
        ("sd", {}, Health.FAILING),
        ("sk", {}, Health.SKIPPED),
        ("skr", {}, Health.SKIPPED),
        ("sr", {}, Health.RUNNING),
        ("sq", {}, Health.RUNNING),
        ("st", {}, Health.RUNNING),
        ("r", {}, Health.RUNNING),
        ("c", {}, Health.NEVER_RAN),
        ("s", {"status": False}, Health.PAUSED),
        ("sf", {"status": False}, Health.PAUSED),
        ("", {"status": False}, Health.PAUSED),
        ("s", {"plan_error": "Minute: 99 is above 59."}, Health.FAILING),
    ],
)
def test_health_follows_the_last_result(runs: str, columns: dict[str, object], wanted: Health) -> None:
    row = SchedulerFactory()
    for run in runs:
        SchedulerExecutionFactory(scheduler=row, **TRAITS[run])
    if columns:
        Scheduler.objects.filter(pk=row.pk).update(
            **columns, **{f"planned_{name}": columns[name] for name in ("status",) if name in columns}
        )
    assert health(row) is wanted


@pytest.mark.parametrize(("runs", "wanted"), [("s", Health.HEALTHY), ("f", Health.FAILING), ("", Health.PAUSED)])
def test_a_one_time_schedule_that_is_over_has_the_health_of_its_run(runs: str, wanted: Health) -> None:
    row = SchedulerFactory(once=True)
    for run in runs:
        SchedulerExecutionFactory(scheduler=row, **TRAITS[run])
    Scheduler.objects.filter(pk=row.pk).update(status=False, planned_status=False, next_run_at=None)
    assert health(row) is wanted


def test_a_schedule_has_ended_if_its_operator_wanted_it_and_not_if_a_calendar_leaves_it_no_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = clock.now()
    monkeypatch.setattr(clock, "now", lambda: now)  # a slow machine needs more than the second until the end
    early, for_ever = now + timedelta(seconds=1), CalendarFactory(entries="every 01-01..12-31 closed")
    held = {"calendar": for_ever, "on_excluded": "hold"}
    rows = [
        SchedulerFactory(active_until=early),
        SchedulerFactory(active_until=early, **held),
        SchedulerFactory(active_until=now + timedelta(days=90), **held),
        SchedulerFactory(active_until=now + timedelta(days=9)),
    ]
    SchedulerExecutionFactory(scheduler=rows[0], failed=True)
    ends = [Health.ENDED, Health.NEVER_RAN, Health.NEVER_RAN, Health.NEVER_RAN]
    assert list(map(health, rows)) == ends
    later = clock.now() + timedelta(days=1)
    ranked = with_health(Scheduler.objects.filter(pk=rows[1].pk), later).get()
    assert health_of(ranked) is Health.ENDED
    assert [row.pk for row in without_next_run(now)] == [rows[1].pk, rows[2].pk]
    assert [row.pk for row in without_next_run(later)] == [rows[2].pk]


@pytest.mark.parametrize(("seconds", "wanted"), [(30, Health.HEALTHY), (90, Health.LATE)])
def test_a_schedule_is_late_after_a_minute(seconds: int, wanted: Health) -> None:
    row = due(SchedulerFactory(), clock.now() - timedelta(seconds=seconds))
    SchedulerExecutionFactory(scheduler=row, succeeded=True)
    assert health(row) is wanted


def test_the_most_urgent_schedule_comes_first() -> None:
    healthy, failing, other = (SchedulerFactory(description=name) for name in ("a", "c", "b"))
    SchedulerExecutionFactory(scheduler=healthy, succeeded=True)
    for row in (failing, other):
        SchedulerExecutionFactory(scheduler=row, failed=True)
    with CaptureQueriesContext(connection) as captured:
        found = list(with_health(Scheduler.objects.all(), clock.now()).order_by(*ORDER))
    assert found == [other, failing, healthy]
    assert len(captured) == 1


@pytest.mark.parametrize(
    ("state", "reason", "shown"),
    [
        (
            "skipped",
            "Paused by anna from 2026-03-10 02:10 to 07:30 UTC. 5 occurrences did not run.",
            False,
        ),
        ("skipped", "Missed 1 occurrence at 2026-03-10 02:10 UTC: no producer was running.", True),
        ("failed", "Paused", True),
    ],
)
def test_the_last_result_leaves_out_what_the_health_leaves_out(state: str, reason: str, shown: bool) -> None:
    row = SchedulerFactory()
    good = SchedulerExecutionFactory(scheduler=row, succeeded=True)
    newest = SchedulerExecutionFactory(scheduler=row, reason=reason, **{state: True})
    other = SchedulerFactory()
    assert last_results([row.pk, other.pk], EVERYTHING) == {row.pk: newest if shown else good}
    assert (health(row) is Health.HEALTHY) is not shown
