"""`confirm_deployment` shows why a database is held and what would run, and confirms it in the name of a user."""

from __future__ import annotations

import io
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone as clock

from scheduling.core import skip_reasons
from scheduling.execution.confirm import ERROR_CLASS
from scheduling.models import Deployment, Process, Scheduler, SchedulerExecution
from scheduling.monitoring.doctor.liveness import of_process
from scheduling.processes.guard import guard
from tests.factories import ProcessFactory, SchedulerExecutionFactory, SchedulerFactory, UserFactory, due

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def no_file(settings: Any) -> None:
    settings.CRON_BEAT_FILE = ""


def said(**options: Any) -> str:
    stream = io.StringIO()
    call_command("confirm_deployment", stdout=stream, **options)
    return stream.getvalue()


def states() -> dict[str, int]:
    found = SchedulerExecution.objects.values_list("state", flat=True)
    return {state: list(found).count(state) for state in found}


def copied() -> None:
    Deployment.objects.update(name="production", fingerprints="0" * 32)


def restored() -> None:
    """The row is an hour older than this process knows."""
    Deployment.objects.update(worked=7_200, beat_at=clock.now())
    assert guard.look() is None
    Deployment.objects.update(worked=3_600, beat_at=clock.now() - timedelta(hours=1))


@pytest.fixture
def work(db: None) -> dict[str, Scheduler]:
    """An execution in each state, and schedules that fell due 10 minutes ago, just now, and tomorrow."""
    for state in ("claimed", "running", "retrying", "succeeded", "failed", "skipped"):
        SchedulerExecutionFactory(**{state: True})
    SchedulerExecutionFactory()
    now = clock.now()
    return {
        "before": due(SchedulerFactory(schedule="*/5 * * * *"), now - timedelta(minutes=10)),
        "once": due(SchedulerFactory(once=True, date_time=now + timedelta(days=1)), now + timedelta(days=1)),
        "later": due(SchedulerFactory(), now + timedelta(days=1)),
    }


def test_without_a_hold_there_is_nothing_to_confirm() -> None:
    assert "nothing to confirm" in said(waiting="run", user="anna")
    assert not LogEntry.objects.exists()


def test_it_shows_what_waits_and_changes_nothing(work: dict[str, Scheduler]) -> None:
    copied()
    ProcessFactory(heartbeat_at=clock.now())
    text = said()
    assert "belongs to “production”" in text
    assert "Executions that wait or run: 4 (claimed 1, queued 1, retrying 1, running 1)." in text
    assert "Schedules that have fallen due: 1." in text
    assert "Processes that work with this database now: 1." in text
    assert guard.look() is not None


def test_it_needs_a_user(work: dict[str, Scheduler]) -> None:
    copied()
    with pytest.raises(CommandError, match="--user"):
        said(waiting="run", user="unknown")
    assert guard.look() is not None


def test_set_aside_leaves_nothing_that_could_run(work: dict[str, Scheduler]) -> None:
    copied()
    user = UserFactory(username="anna")
    assert "Skipped schedules: 1. Set aside: 4." in said(waiting="set-aside", user="anna")
    assert guard.look() is None
    assert states() == {"failed": 5, "succeeded": 1, "skipped": 2}
    assert SchedulerExecution.objects.filter(error_class=ERROR_CLASS, state="failed").count() == 4
    skipped = SchedulerExecution.objects.get(scheduler=work["before"])
    assert skip_reasons.CONFIRMED in skipped.reason
    assert skipped.missed == 3
    for row in work.values():
        row.refresh_from_db()
        assert row.next_run_at is not None
        assert row.next_run_at > clock.now()
    entry = LogEntry.objects.get(user=user)
    assert "production" in entry.change_message
    stored = Deployment.objects.get()
    assert (stored.confirmed_by, stored.held_at, stored.name) == ("anna", None, "")


def test_run_lets_all_of_a_copy_run(work: dict[str, Scheduler]) -> None:
    copied()
    UserFactory(username="anna")
    before = states()
    assert "Skipped schedules: 0. Set aside: 0." in said(waiting="run", user="anna")
    assert states() == before
    assert Scheduler.objects.filter(next_run_at__lte=clock.now()).count() == 1


def test_after_a_restore_what_fell_due_before_the_newest_beat_is_always_skipped(
    work: dict[str, Scheduler],
) -> None:
    restored()
    UserFactory(username="anna")
    assert "They have run, and are skipped." in said()
    said(waiting="run", user="anna")
    skipped = SchedulerExecution.objects.get(scheduler=work["before"])
    assert skip_reasons.RAN_BEFORE_RESTORE in skipped.reason
    assert states()["queued"] == 1
    assert guard.look() is None


def test_a_one_time_schedule_and_one_that_cannot_be_planned(work: dict[str, Scheduler]) -> None:
    copied()
    now = clock.now()
    Scheduler.objects.filter(pk=work["once"].pk).update(
        date_time=now - timedelta(minutes=1), next_run_at=now - timedelta(minutes=1)
    )
    broken = due(SchedulerFactory(), now - timedelta(minutes=1))
    Scheduler.objects.filter(pk=broken.pk).update(schedule="nonsense")
    UserFactory(username="anna")
    assert "Skipped schedules: 2." in said(waiting="set-aside", user="anna")
    work["once"].refresh_from_db()
    assert (work["once"].status, work["once"].next_run_at) == (False, None)


def test_only_the_row_was_deleted_so_runs_under_way_go_on(work: dict[str, Scheduler]) -> None:
    Deployment.objects.all().delete()
    UserFactory(username="anna")
    assert "Set aside: 3." in said(waiting="set-aside", user="anna")
    assert states()["running"] == 1
    assert guard.look() is None


def test_doctor_and_health_say_so() -> None:
    copied()
    stream = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("doctor", "--only", "deployment", stdout=stream)
    assert "Nothing is claimed, started or published." in stream.getvalue()
    process = ProcessFactory(kind=Process.Kind.PRODUCER, heartbeat_at=clock.now(), info={"held": "It is a copy."})
    pulse = of_process("producer", clock.now(), host=process.host)
    assert pulse.well
    assert "it holds: It is a copy." in pulse.text


def test_the_doctor_of_the_owner_names_a_process_of_another_deployment() -> None:
    ProcessFactory(kind=Process.Kind.PRODUCER, heartbeat_at=clock.now(), info={"held": "It is a copy."})
    stream = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("doctor", "--only", "deployment", "processes", stdout=stream)
    assert "Processes that claim, start and publish nothing: 1." in stream.getvalue()
    assert "No producer is alive" in stream.getvalue()
