"""A deadline that will be missed is told before it; one that is kept is not told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduling.core.alert_rules import RuleKind
from scheduling.models import Alert, Scheduler, SchedulerExecution
from tests.alerts.scripted import Script, run_of
from tests.factories import SchedulerFactory

pytestmark = pytest.mark.django_db

DUE = datetime(2026, 11, 25, 2, tzinfo=UTC)
DEADLINE = DUE + timedelta(hours=2)


@pytest.fixture
def nightly() -> Scheduler:
    """Return a schedule that is due each night at 02:00, and whose runs took an hour in the last ten nights."""
    row: Scheduler = SchedulerFactory(schedule="0 2 * * *", timezone="UTC")
    Scheduler.objects.filter(pk=row.pk).update(planned_at=DUE - timedelta(days=90))
    for night in range(10, 0, -1):
        at = DUE - timedelta(days=night)
        run_of(row, "succeeded", at, finished_at=at + timedelta(seconds=3_600 + 10 * night))
    return row


def script_of(schedule: Scheduler, now: datetime) -> Script:
    return Script(RuleKind.NOT_FINISHED, now=now, schedule=schedule, at="04:00")


def test_a_slow_night_is_told_before_the_deadline_and_ends_when_the_run_is_finished(nightly: Scheduler) -> None:
    script = script_of(nightly, DUE)
    run = run_of(nightly, "running", DUE)
    script.stays_silent()
    script.now = DUE + timedelta(minutes=100)
    script.stays_silent()
    script.now = DEADLINE - timedelta(minutes=6)
    alert = script.begins()
    assert alert.started_at < DEADLINE
    assert "will probably not be finished by 04:00 UTC" in alert.seen
    script.now = DEADLINE
    script.stays_silent()
    script.look(seconds=10)
    alert.refresh_from_db()
    assert "is not finished" in alert.seen
    SchedulerExecution.objects.filter(pk=run.pk).update(state="succeeded", finished_at=script.now)
    script.ends()
    script.now = DUE + timedelta(days=1)
    script.stays_silent()


def test_a_run_that_starts_too_late_is_told_at_once(nightly: Scheduler) -> None:
    script = script_of(nightly, DUE + timedelta(minutes=55))
    script.stays_silent()
    script.now = DUE + timedelta(minutes=60)
    assert "It has not started." in script.begins().seen
    run_of(nightly, "succeeded", DUE, finished_at=script.now)
    script.ends()


def test_a_missed_deadline_of_the_day_before_is_told_until_a_later_run_is_finished(nightly: Scheduler) -> None:
    script = script_of(nightly, DUE - timedelta(minutes=10))
    SchedulerExecution.objects.filter(scheduler=nightly, scheduled_at=DUE - timedelta(days=1)).update(state="failed")
    assert "It has failed." in script.begins().seen
    run_of(nightly, "succeeded", DUE, finished_at=script.now)
    script.ends()


@pytest.mark.parametrize(
    "reason", ["Paused by ann from 01:00 to 03:00.", "Left out, because execution 3 was not over."]
)
def test_what_was_left_out_on_purpose_is_silent(nightly: Scheduler, reason: str) -> None:
    script = script_of(nightly, DEADLINE - timedelta(minutes=1))
    run_of(nightly, "skipped", DUE, reason=reason)
    script.stays_silent()


def test_cancelled_runs_and_paused_schedules_are_silent_and_missed_ones_are_not(nightly: Scheduler) -> None:
    script = script_of(nightly, DEADLINE)
    run = run_of(nightly, "cancelled", DUE)
    script.stays_silent()
    SchedulerExecution.objects.filter(pk=run.pk).update(state="skipped", reason="Missed 1 occurrence.")
    script.begins()
    Scheduler.objects.filter(pk=nightly.pk).update(status=False)
    script.ends()


def test_the_rule_needs_a_schedule_and_a_time(nightly: Scheduler) -> None:
    for columns in ({"at": "04:00"}, {"schedule": nightly, "at": "4:00"}, {"schedule": nightly}):
        script = Script(RuleKind.NOT_FINISHED, now=DEADLINE, **columns)
        script.look(1)
        assert script.rule.error
        assert not script.told


@pytest.mark.parametrize("own", ["Europe/Madrid", ""])
def test_the_deadline_is_in_the_zone_of_the_schedule_or_of_the_site(own: str, settings: Any) -> None:
    settings.CRON_TIMEZONE = "UTC" if own else "Europe/Madrid"
    schedule = SchedulerFactory(schedule="0 2 * * *", timezone=own)
    Scheduler.objects.filter(pk=schedule.pk).update(planned_at=DUE - timedelta(hours=10))
    four_in_madrid = DUE + timedelta(hours=1)
    run_of(schedule, "running", four_in_madrid - timedelta(hours=2))
    script = script_of(schedule, four_in_madrid - timedelta(minutes=10))
    script.stays_silent()
    script.now = four_in_madrid
    assert "It was to be finished by 04:00 CET" in script.begins().seen


@pytest.mark.parametrize(("known", "says"), [(4, False), (5, True)])
def test_the_usual_duration_is_told_only_if_it_is_known(nightly: Scheduler, known: int, says: bool) -> None:
    runs = SchedulerExecution.objects.filter(scheduler=nightly).order_by("-pk")
    SchedulerExecution.objects.filter(pk__in=list(runs.values_list("pk", flat=True)[known:])).delete()
    script_of(nightly, DEADLINE - timedelta(seconds=50)).look(1)
    seen = Alert.objects.get().seen
    assert "It will probably not be finished" in seen
    assert ("Nine of ten usual runs take at most" in seen) is says


@pytest.mark.parametrize(
    ("state", "said", "advice"),
    [
        ("failed", "It has failed.", "Fix the cause and republish it, or tell those who wait for it."),
        ("discarded", "It has failed, and was discarded.", "Tell those who wait for it."),
        ("running", "It has been running for", "Tell those who wait for it."),
    ],
)
def test_the_advice_is_for_the_state_of_the_run(nightly: Scheduler, state: str, said: str, advice: str) -> None:
    run_of(nightly, state, DUE)
    alert = script_of(nightly, DEADLINE).begins()
    assert said in alert.seen
    assert alert.advice == advice


def test_a_run_that_has_failed_for_good_is_told_at_once(nightly: Scheduler) -> None:
    script = script_of(nightly, DUE + timedelta(minutes=1))
    run = run_of(nightly, "retrying", DUE)
    script.stays_silent()
    SchedulerExecution.objects.filter(pk=run.pk).update(state="failed", finished_at=script.now)
    script.memory.clear()  # nothing is known of its usual duration, and need not be
    assert script.begins().seen == (
        "It is to be finished by 04:00 UTC, and no further run is due before. It has failed."
    )
    SchedulerExecution.objects.filter(pk=run.pk).update(state="queued", finished_at=None)  # it was republished
    script.ends()
