"""The rules about runs: each begins an alert once at its edge, and ends it once. What must stay silent stays silent."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any

import pytest
from django.forms.models import model_to_dict

from scheduling.alerts import known_groups
from scheduling.alerts.known_groups import note_groups
from scheduling.alerts.runs import MOST_RUNS
from scheduling.core.alert_rules import RuleKind
from scheduling.core.alerts import error_group_key
from scheduling.core.skip_reasons import NO_PRODUCER, missed
from scheduling.execution.retention import prune
from scheduling.execution.rule_pauses import pause_failing
from scheduling.models import Alert, Attempt, KnownErrorGroup, Scheduler, SchedulerExecution, Tally
from tests.alerts.scripted import START, Script, run_of
from tests.factories import AttemptFactory, GroupFactory, SchedulerFactory, TallyFactory, due

pytestmark = pytest.mark.django_db


@pytest.fixture
def schedule() -> Scheduler:
    """Return a schedule that is due tomorrow and has had its times for long."""
    row: Scheduler = SchedulerFactory(description="Import orders", timezone="UTC")
    Scheduler.objects.filter(pk=row.pk).update(planned_at=START - timedelta(days=90))
    return due(row, START + timedelta(days=1))


def set_state(row: SchedulerExecution, state: str, **columns: object) -> None:
    SchedulerExecution.objects.filter(pk=row.pk).update(state=state, **columns)


def test_inbox(schedule: Scheduler) -> None:
    script = Script(RuleKind.INBOX, number=2)
    runs = [run_of(schedule, "failed", START) for _ in range(2)]
    script.stays_silent()
    runs.append(run_of(schedule, "failed", START))
    assert "3" in script.begins().seen
    set_state(runs[0], "discarded")
    script.ends()


def test_a_very_full_inbox(schedule: Scheduler) -> None:
    """It is counted again when one of its newest failures comes or goes, and otherwise within a minute."""
    like = model_to_dict(run_of(schedule, "failed", START), exclude=["id", "scheduler", "group", "execution_key"])
    SchedulerExecution.objects.bulk_create(
        SchedulerExecution(scheduler=schedule, execution_key=f"copy-{number}", **like)
        for number in range(MOST_RUNS + 8)
    )
    script = Script(RuleKind.INBOX, number=MOST_RUNS + 4)
    assert f"{MOST_RUNS + 9}" in script.begins().seen
    oldest = SchedulerExecution.objects.order_by("pk").values("pk")[:6]
    SchedulerExecution.objects.filter(pk__in=list(oldest.values_list("pk", flat=True))).update(state="discarded")
    script.ends()
    for _ in range(2):
        run_of(schedule, "failed", START)
    script.look(times=1)
    assert f"{MOST_RUNS + 5}" in Alert.objects.get(ended_at=None).seen


def test_inbox_of_a_schedule_and_of_a_group(schedule: Scheduler) -> None:
    group = GroupFactory()
    Scheduler.objects.filter(pk=schedule.pk).update(group=group)
    script = Script(RuleKind.INBOX, number=0, schedule=schedule)
    run_of(SchedulerFactory(), "failed", START)
    script.stays_silent()
    own = run_of(schedule, "failed", START, group=group)
    alert = script.begins()
    assert (alert.schedule_id, alert.group_id, alert.subject) == (schedule.pk, group.pk, "Import orders")
    set_state(own, "discarded")
    script.ends()
    of_group = Script(RuleKind.INBOX, number=0, group=group)
    of_group.stays_silent()
    set_state(own, "failed")
    assert of_group.begins().group_id == group.pk


def test_a_rule_for_all_counts_each_group_on_its_own() -> None:
    """Otherwise the members of a group would be told a number of another group."""
    group = GroupFactory()
    script = Script(RuleKind.INBOX, number=1)
    run_of(SchedulerFactory(), "failed", START)
    own = [run_of(SchedulerFactory(), "failed", START, group=group)]
    script.stays_silent()
    own.append(run_of(SchedulerFactory(), "failed", START, group=group))
    alert = script.begins()
    assert (alert.group_id, alert.seen) == (group.pk, "Failures in the inbox: 2. The limit is 1.")
    set_state(own[0], "discarded")
    script.ends()


def test_retried(schedule: Scheduler) -> None:
    script = Script(RuleKind.RETRIED, number=2)
    run = run_of(schedule, "retrying", START, attempt=3)
    script.stays_silent()  # the second retry has started
    set_state(run, "retrying", attempt=4)
    alert = script.begins()
    assert (alert.execution, alert.schedule_id) == (run.pk, schedule.pk)
    set_state(run, "queued")  # the retry is published, and waits
    script.stays_silent()
    set_state(run, "failed")
    script.ends()
    set_state(run, "queued", retry_base=4)  # it was republished
    script.stays_silent()


def test_a_retried_run_that_is_cancelled_is_over(schedule: Scheduler) -> None:
    script = Script(RuleKind.RETRIED, number=1, schedule=schedule)
    run_of(SchedulerFactory(), "retrying", START, attempt=9)
    script.stays_silent()  # another schedule
    run = run_of(schedule, "running", START, attempt=3)
    script.begins()
    set_state(run, "cancelled")
    script.ends()


def test_retry_share(schedule: Scheduler) -> None:
    script = Script(RuleKind.RETRY_SHARE)
    hour = START.replace(minute=0)
    tally = TallyFactory(hour=hour, schedule=schedule.pk, attempts=25, retries=5)
    TallyFactory(hour=hour - timedelta(hours=25), schedule=schedule.pk, attempts=900, retries=900)
    script.stays_silent()  # 20 %
    type(tally).objects.filter(pk=tally.pk).update(attempts=24, retries=5)
    script.stays_silent()  # 19 runs are too few
    type(tally).objects.filter(pk=tally.pk).update(attempts=26, retries=6)
    assert "26" in script.begins().seen
    type(tally).objects.filter(pk=tally.pk).update(attempts=60)
    script.ends()


def test_retry_share_of_a_schedule_and_of_a_group(schedule: Scheduler) -> None:
    group = GroupFactory()
    TallyFactory(schedule=schedule.pk, hour=START, attempts=40, retries=20)
    TallyFactory(schedule=schedule.pk + 1, group=group.pk, hour=START, attempts=400, retries=1)
    Script(RuleKind.RETRY_SHARE, group=group).stays_silent()
    assert Script(RuleKind.RETRY_SHARE, schedule=schedule).begins().schedule_id == schedule.pk


def test_retry_share_of_all_looks_at_each_group_on_its_own(schedule: Scheduler) -> None:
    TallyFactory(schedule=schedule.pk, hour=START, attempts=400, retries=1)
    TallyFactory(schedule=schedule.pk, group=GroupFactory().pk, hour=START, attempts=40, retries=20)
    alert = Script(RuleKind.RETRY_SHARE).begins()
    assert alert.group_id is not None
    assert "Of 40 attempts" in alert.seen


def test_not_started_because_no_producer_has_claimed_it(schedule: Scheduler) -> None:
    script = Script(RuleKind.NOT_STARTED, seconds=300)
    due(schedule, script.ago(seconds=190))
    script.stays_silent()  # 290 s at the last look
    alert = script.begins()
    assert "No producer has claimed it" in alert.seen
    due(schedule, START + timedelta(days=1))
    script.ends()


def test_not_started_because_it_waits(schedule: Scheduler) -> None:
    script = Script(RuleKind.NOT_STARTED, seconds=300)
    run = run_of(schedule, "queued", script.ago(seconds=350), reason="The handler is paused by ann.")
    alert = script.begins()
    assert (alert.execution, alert.schedule_id) == (run.pk, schedule.pk)
    assert "paused by ann" in alert.seen
    set_state(run, "running", attempt=1)
    script.ends()


def test_not_started_stays_silent_about_what_was_paused_skipped_or_retried(schedule: Scheduler) -> None:
    script = Script(RuleKind.NOT_STARTED, seconds=300)
    paused = SchedulerFactory(off=True)
    long_ago = script.ago(hours=1)
    run_of(due(paused, long_ago), "queued", long_ago)
    run_of(schedule, "skipped", long_ago)
    run_of(schedule, "queued", long_ago, attempt=1)
    run_of(schedule, "queued", long_ago, trigger="manual")
    run_of(schedule, "queued", long_ago, trigger="backfill")
    run_of(None, "queued", long_ago)
    script.stays_silent()
    run_of(schedule, "claimed", long_ago)
    script.begins()


def test_not_started_because_it_cannot_be_planned(schedule: Scheduler) -> None:
    script = Script(RuleKind.NOT_STARTED, schedule=schedule)
    Scheduler.objects.filter(pk=SchedulerFactory().pk).update(plan_error="broken", next_run_at=None)
    script.stays_silent()  # another schedule
    Scheduler.objects.filter(pk=schedule.pk).update(plan_error="The zone is gone.", next_run_at=None)
    assert "The zone is gone." in script.begins().seen
    Scheduler.objects.filter(pk=schedule.pk).update(plan_error="", next_run_at=START + timedelta(days=1))
    script.ends()


def test_failed_in_a_row(schedule: Scheduler) -> None:
    script = Script(RuleKind.FAILED_IN_A_ROW, number=3)
    for hours in (5, 4):
        run_of(schedule, "failed", script.ago(hours=hours))
    run_of(schedule, "skipped", script.ago(hours=3))
    script.stays_silent()
    run = run_of(schedule, "failed", script.ago(hours=2), error_class="app.errors.InvoiceError")
    alert = script.begins()
    assert (alert.execution, alert.schedule_id) == (run.pk, schedule.pk)
    assert alert.seen == "Its last runs have failed. In a row: 3. The last error: app.errors.InvoiceError."
    SchedulerExecution.objects.filter(state="failed").update(state="discarded")
    script.stays_silent()  # discarded failures have failed, too
    run_of(schedule, "succeeded", script.ago(hours=1))
    script.ends()


def test_the_runs_of_a_schedule_are_followed_while_they_change(schedule: Scheduler) -> None:
    script = Script(RuleKind.FAILED_IN_A_ROW, number=1, schedule=schedule)
    run = run_of(schedule, "running", script.now)
    script.look(1)
    set_state(run, "failed")
    script.look(1)
    assert script.told == {"start": 1}
    set_state(run, "running")  # it was republished
    script.look(5)
    assert script.told == {"start": 1, "end": 1}
    SchedulerExecution.objects.all().delete()
    script.stays_silent()


def test_slow(schedule: Scheduler) -> None:
    script = Script(RuleKind.SLOW, number=2)
    for number in range(19):
        at = script.ago(days=19 - number)
        run_of(schedule, "succeeded", at, finished_at=at + timedelta(seconds=60))
    run = run_of(schedule, "running", script.ago(seconds=500))
    script.stays_silent()  # 19 runs are too few
    set_state(run, "succeeded", started_at=script.ago(seconds=60), finished_at=script.now)
    script.memory.clear()
    run = run_of(schedule, "running", script.now)
    script.stays_silent()  # 100 s are less than twice 60 s
    assert script.begins().execution == run.pk
    set_state(run, "failed")
    script.ends()


def test_a_slow_run_that_no_look_has_seen_running(schedule: Scheduler) -> None:
    script = Script(RuleKind.SLOW, number=2, schedule=schedule)
    for number in range(20):
        at = script.ago(days=20 - number)
        run_of(schedule, "succeeded", at, finished_at=at + timedelta(seconds=1))
    started, ended = script.now, script.now + timedelta(seconds=9)
    run = run_of(schedule, "succeeded", started, finished_at=ended)
    AttemptFactory(execution=run, started_at=started, finished_at=ended, outcome=Attempt.Outcome.SUCCEEDED)
    other = run_of(SchedulerFactory(), "succeeded", started, finished_at=ended)
    AttemptFactory(execution=other, started_at=started, finished_at=ended)
    script.look(20)
    assert script.told == {"start": 1, "end": 1}
    assert Alert.objects.get().execution == run.pk


def test_skipped(schedule: Scheduler) -> None:
    script = Script(RuleKind.SKIPPED)
    run_of(schedule, "skipped", script.ago(hours=3), reason="Paused by ann from 10:00 to 11:00. 1 did not run.")
    run_of(schedule, "skipped", script.ago(hours=2), reason="Left out, because execution 7 was not over.")
    script.stays_silent()
    run_of(schedule, "skipped", script.ago(hours=1), reason="Missed 3 occurrences: no producer was running.")
    assert "no producer was running" in script.begins().seen
    run_of(schedule, "queued", script.now)
    script.stays_silent()  # the next occurrence has not started
    run_of(schedule, "running", script.now)
    script.ends()


def test_the_reason_is_in_the_language_of_the_site(schedule: Scheduler, settings: Any) -> None:
    settings.LANGUAGE_CODE = "de"
    script = Script(RuleKind.SKIPPED)
    reason = missed(START - timedelta(hours=3), START, 3, NO_PRODUCER, UTC)
    run_of(schedule, "skipped", script.ago(hours=1), reason=reason)
    assert script.begins().seen.endswith("UTC: kein Producer lief.")


def test_a_paused_schedule_is_not_told_as_skipped(schedule: Scheduler) -> None:
    script = Script(RuleKind.SKIPPED, schedule=schedule)
    run_of(SchedulerFactory(), "skipped", script.ago(hours=1))
    run_of(schedule, "skipped", script.ago(hours=1))
    script.begins()
    Scheduler.objects.filter(pk=schedule.pk).update(status=False)
    script.ends()


def test_a_resolved_error_is_back(schedule: Scheduler) -> None:
    script = Script(RuleKind.GROUP_BACK)
    first = run_of(schedule, "failed", START, fingerprint="f1")
    second = run_of(schedule, "failed", START, fingerprint="f1")
    script.stays_silent()  # it is new
    set_state(first, "discarded")
    script.stays_silent()
    set_state(second, "succeeded", fingerprint="")  # it was republished
    script.stays_silent()
    run_of(schedule, "failed", START, fingerprint="f2")
    script.stays_silent()  # another error
    back = run_of(schedule, "failed", script.now, fingerprint="f1", attempt=1)
    AttemptFactory(execution=back, number=1, release="2026.47")
    alert = script.begins()
    assert "2026.47" in alert.seen
    assert "ValueError" in alert.subject
    run_of(schedule, "failed", script.now, fingerprint="f1")
    script.stays_silent()
    SchedulerExecution.objects.filter(fingerprint="f1").update(state="discarded")
    script.ends()


def test_the_same_error_of_another_group_is_not_back(schedule: Scheduler) -> None:
    group = GroupFactory()
    script = Script(RuleKind.GROUP_BACK)
    run = run_of(schedule, "failed", START, fingerprint="f1", group=group)
    script.stays_silent()
    set_state(run, "discarded")
    script.stays_silent()
    run_of(schedule, "failed", START, fingerprint="f1")
    script.stays_silent()
    run_of(schedule, "failed", START, fingerprint="f1", group=group)
    assert script.begins().group_id == group.pk


def test_no_error_group_counts_as_gone_while_the_inbox_has_too_many_failures() -> None:
    assert note_groups({"a", "b"}, START, complete=True) == set()
    assert note_groups({"b"}, START, complete=False) == set()
    assert note_groups({"a", "b"}, START, complete=True) == set()
    assert note_groups({"b"}, START, complete=True) == set()
    assert note_groups({"a", "b"}, START, complete=True) == {"a"}


def test_a_group_that_never_left_is_not_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known_groups, "MOST_PRESENT", 2)
    assert note_groups({"a", "b", "c"}, START, complete=False) == set()
    for _time in range(2):
        assert note_groups({"a", "b", "c"}, START, complete=False) == set()
    assert set(KnownErrorGroup.objects.values_list("left_at", "is_back")) == {(None, False)}
    KnownErrorGroup.objects.filter(key="a").update(is_back=True)
    assert note_groups({"a", "b", "c"}, START, complete=False) == {"a"}


def test_the_cleanup_finds_the_groups_that_have_left_a_full_inbox(schedule: Scheduler) -> None:
    group = GroupFactory()
    gone = run_of(schedule, "failed", START, fingerprint="f1")
    run_of(schedule, "failed", START, fingerprint="f1", group=group)
    left, stays = error_group_key("f1", None), error_group_key("f1", group.pk)
    note_groups({left, stays}, START, complete=False)
    KnownErrorGroup.objects.update(is_back=True)
    set_state(gone, "discarded")
    prune(START, dry_run=True)
    assert not KnownErrorGroup.objects.exclude(left_at=None).exists()
    prune(START)
    assert set(KnownErrorGroup.objects.values_list("key", "left_at", "is_back")) == {
        (left, START, False), (stays, None, True),
    }  # fmt: skip
    assert note_groups({left}, START, complete=False) == {left}
    KnownErrorGroup.objects.filter(key=left).update(left_at=START - timedelta(days=400))
    prune(START)
    assert KnownErrorGroup.objects.get().key == stays


def test_paused_by_failures(schedule: Scheduler) -> None:
    Scheduler.objects.filter(pk=schedule.pk).update(pause_after_failures=1)
    script = Script(RuleKind.PAUSED_BY_FAILURES)
    run_of(schedule, "failed", START)
    script.stays_silent()
    assert pause_failing([schedule.pk], START) == 1
    alert = script.begins()
    assert (alert.schedule_id, alert.subject) == (schedule.pk, "Import orders")
    assert alert.seen.startswith("Its rule has paused it: 1 failure; the last is execution ")
    schedule.refresh_from_db()
    schedule.status = True
    schedule.save()
    script.ends()


def test_a_schedule_that_a_user_has_paused_is_no_alert(schedule: Scheduler) -> None:
    script = Script(RuleKind.PAUSED_BY_FAILURES)
    schedule.status = False
    schedule.save()
    script.stays_silent()


def test_an_hour_that_was_read_before_its_end_is_read_again(schedule: Scheduler) -> None:
    """Meanwhile, another process has evaluated, or this one was suspended."""
    script = Script(RuleKind.RETRY_SHARE)
    tally = TallyFactory(hour=START, attempts=5, retries=0)
    script.look(times=1)
    Tally.objects.filter(pk=tally.pk).update(attempts=100, retries=50)
    script.now += timedelta(hours=3)
    script.begins()


def test_an_execution_that_is_skipped_later_than_a_newer_one_is_told(schedule: Scheduler) -> None:
    other = due(SchedulerFactory(timezone="UTC"), START + timedelta(days=1))
    script = Script(RuleKind.SKIPPED)
    waits = run_of(schedule, "blocked", START - timedelta(minutes=5))
    run_of(other, "skipped", START, reason=missed(START, START, 1, NO_PRODUCER, UTC))
    run_of(other, "succeeded", START)
    script.stays_silent()
    set_state(waits, "skipped", reason=missed(START, START, 1, NO_PRODUCER, UTC), finished_at=script.now)
    assert script.begins().execution == waits.pk
