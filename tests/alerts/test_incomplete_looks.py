"""A rule looks at a bounded number of rows. What lies beyond them ends no alert."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from scheduling.alerts.look import MOST_NEW_DURATIONS
from scheduling.alerts.memory import Memory
from scheduling.alerts.rules import rule_pauses, starts
from scheduling.alerts.runs import MOST_RUNS
from scheduling.core.alert_rules import RuleKind
from scheduling.core.skip_reasons import is_on_purpose, not_needed
from scheduling.models import Alert, AlertRule, Scheduler, SchedulerExecution
from scheduling.models.plan import PlanState
from tests.alerts.scripted import START, Script, run_of
from tests.factories import GroupFactory, SchedulerFactory

pytestmark = pytest.mark.django_db

LATE = "It was too late: no process was alive."


def storm(script: Script, state: str, **columns: Any) -> Sequence[SchedulerExecution]:
    """As many executions as a rule looks at, all newer than those that exist."""
    row = run_of(None, state, script.now, type="worker", target_name="other", **columns)
    names = [field.attname for field in row._meta.concrete_fields if field.attname not in ("id", "execution_key")]
    values = {name: getattr(row, name) for name in names}
    return SchedulerExecution.objects.bulk_create(
        SchedulerExecution(**values, execution_key=f"{row.execution_key}-{number}") for number in range(MOST_RUNS)
    )


def test_failures_of_another_group_do_not_end_the_alert_about_the_inbox_of_a_group() -> None:
    own, other = GroupFactory(), GroupFactory()
    script, schedule = Script(RuleKind.INBOX, number=10), SchedulerFactory(group=own)
    for _number in range(20):
        run_of(schedule, "failed", script.ago(hours=1), group=own)
    script.begins()
    storm(script, "failed", group=other)
    script.look()
    assert {alert.group: alert.ended_at for alert in Alert.objects.all()} == {own: None, other: None}


def test_the_inbox_of_a_group_is_told_although_its_failures_are_older_than_many_others() -> None:
    own, other = GroupFactory(), GroupFactory()
    script, schedule = Script(RuleKind.INBOX, number=10), SchedulerFactory(group=own)
    for _number in range(20):
        run_of(schedule, "failed", script.ago(hours=1), group=own)
    storm(script, "failed", group=other)
    script.look()
    assert {alert.group for alert in Alert.objects.all()} == {own, other}


@pytest.fixture
def back() -> tuple[Script, SchedulerExecution]:
    """An error group with a failure that had left the inbox and has come back, and was told."""
    schedule, script = SchedulerFactory(), Script(RuleKind.GROUP_BACK)
    cause = {"fingerprint": "x" * 40, "error_class": "KeyError"}
    run_of(schedule, "failed", script.ago(hours=1), **cause)
    script.look(2)
    SchedulerExecution.objects.all().delete()
    script.look(2)
    run = run_of(schedule, "failed", script.now, **cause)
    script.begins()
    return script, run


def test_an_error_group_that_is_back_goes_on_behind_many_other_failures(
    back: tuple[Script, SchedulerExecution],
) -> None:
    script, run = back
    others = storm(script, "failed", fingerprint="y" * 40)
    script.stays_silent()
    SchedulerExecution.objects.filter(pk__in=[one.pk for one in others]).delete()
    script.stays_silent()
    # Another failure of the group is told of, too, after the first one has left the inbox.
    run_of(run.scheduler, "failed", script.now, fingerprint="x" * 40)
    SchedulerExecution.objects.filter(pk=run.pk).update(state="succeeded")
    storm(script, "failed", fingerprint="z" * 40)
    script.stays_silent()


def test_an_error_group_that_has_left_the_inbox_is_over_behind_many_other_failures(
    back: tuple[Script, SchedulerExecution],
) -> None:
    script, run = back
    storm(script, "failed", fingerprint="y" * 40)
    SchedulerExecution.objects.filter(pk=run.pk).update(state="succeeded")
    script.ends()


@pytest.mark.parametrize("reason", [LATE, not_needed("nothing to do")])
def test_many_other_skipped_runs_do_not_end_the_alert_about_one(reason: str) -> None:
    schedule, script = SchedulerFactory(), Script(RuleKind.SKIPPED)
    run_of(schedule, "skipped", script.ago(minutes=1), reason=LATE)
    script.begins()
    assert is_on_purpose(reason) == (reason != LATE)
    storm(script, "skipped", reason=reason)
    script.stays_silent()
    run_of(schedule, "succeeded", script.now)
    script.ends()


@pytest.mark.parametrize("others", [0, 4 * MOST_NEW_DURATIONS])
def test_a_process_that_takes_over_ends_no_deadline_whose_durations_it_does_not_know(others: int) -> None:
    fillers = SchedulerFactory.create_batch(others, schedule="0 3 * * *", planned_at=START)
    schedule = SchedulerFactory(schedule="0 11 * * *", timezone="UTC")
    script = Script(RuleKind.NOT_FINISHED, schedule=schedule, at="12:50")
    AlertRule.objects.bulk_create(
        AlertRule(name=f"rule {number}", kind="not_finished", schedule=filler, at="23:59")
        for number, filler in enumerate(fillers)
    )
    Scheduler.objects.filter(pk=schedule.pk).update(planned_at=None)
    due = script.now.replace(hour=11)
    for days in range(30, 0, -1):
        at = due - timedelta(days=days)
        run_of(schedule, "succeeded", at, started_at=at, finished_at=at + timedelta(hours=2), trigger="cron")
    run_of(schedule, "running", due, started_at=due, trigger="cron")
    script.begins()
    script.memory = Memory()
    script.stays_silent()


def test_a_process_that_takes_over_ends_no_alert_about_a_slow_run_whose_durations_it_does_not_know(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    schedule, script = SchedulerFactory(), Script(RuleKind.SLOW, number=3)
    for hours in range(30, 0, -1):
        at = script.ago(hours=hours)
        run_of(schedule, "succeeded", at, started_at=at, finished_at=at + timedelta(minutes=1))
    run_of(schedule, "running", script.ago(minutes=30))
    script.begins()
    script.memory = Memory()
    monkeypatch.setattr("scheduling.alerts.look.MOST_NEW_DURATIONS", 0)
    script.stays_silent()


def test_the_last_run_of_a_schedule_that_a_rule_names_is_looked_at_behind_many_open_runs() -> None:
    schedule = SchedulerFactory()
    script = Script(RuleKind.RETRIED, schedule=schedule, number=2)
    storm(script, "retrying", attempt=2)
    storm(script, "running", attempt=1)
    run_of(schedule, "retrying", script.now, attempt=9)
    assert script.begins().schedule == schedule


def test_a_schedule_that_is_set_aside_goes_on_behind_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starts._aside, "_most", 1)
    first, schedule = SchedulerFactory.create_batch(2)
    script = Script(RuleKind.NOT_STARTED, seconds=300)
    columns = {"plan_state": PlanState.SET_ASIDE, "plan_error": "It cannot be read.", "next_run_at": None}
    Scheduler.objects.filter(pk=schedule.pk).update(**columns)
    script.begins()
    Scheduler.objects.filter(pk=first.pk).update(**columns)
    assert script.begins().schedule == first
    assert Alert.objects.get(schedule=schedule).ended_at is None


def test_a_schedule_that_failures_have_paused_goes_on_behind_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rule_pauses._paused, "_most", 1)
    first, schedule = SchedulerFactory.create_batch(2)
    script = Script(RuleKind.PAUSED_BY_FAILURES)
    columns = {"paused_for": "failures", "status": False, "paused_at": script.now, "pause_reason": "Failed twice."}
    Scheduler.objects.filter(pk=schedule.pk).update(**columns)
    script.begins()
    Scheduler.objects.filter(pk=first.pk).update(**columns)
    assert script.begins().schedule == first
    assert Alert.objects.get(schedule=schedule).ended_at is None
