"""Retention removes only executions that ended long ago. It removes them in batches."""

from __future__ import annotations

from datetime import timedelta
from itertools import count

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone as clock

from scheduling.execution.retention import prune
from scheduling.models import Attempt, Output, SchedulerExecution
from scheduling.signals import executions_pruned
from tests.factories import ManualExecutionFactory

pytestmark = pytest.mark.django_db

OLD = timedelta(days=40)


def make_executions(state: str, number: int = 1, age: timedelta = OLD) -> list[SchedulerExecution]:
    then = clock.now() - age
    rows = ManualExecutionFactory.bulk(number, state=state, executed_at=then, finished_at=then, wake_at=None)
    for row in rows:
        Attempt.objects.create(
            execution=row, number=1, started_at=then, finished_at=then, consumer="x", outcome="succeeded"
        )
        Output.objects.create(execution=row, attempt=1, sequence=0, text="x\n", created_at=then)
    return rows


def test_only_executions_that_ended_long_ago_are_removed() -> None:
    for state in ("succeeded", "cancelled", "discarded", "skipped"):
        make_executions(state)
    kept = [
        row.pk for state in ("failed", "queued", "running", "retrying", "claimed") for row in make_executions(state)
    ]
    kept += [row.pk for row in make_executions("succeeded", age=timedelta(days=29))]
    done = prune(clock.now(), 30)
    assert (done.executions, done.attempts, done.outputs, done.complete) == (4, 4, 4, True)
    assert sorted(SchedulerExecution.objects.values_list("pk", flat=True)) == sorted(kept)
    assert Attempt.objects.count() == Output.objects.count() == len(kept)


def test_a_dry_run_counts_and_removes_nothing() -> None:
    make_executions("succeeded", 3)
    assert prune(clock.now(), 30, dry_run=True).executions == 3
    assert SchedulerExecution.objects.count() == 3


def test_batches_stop_after_the_maximum_time() -> None:
    make_executions("succeeded", 10)
    ticks = count()
    done = prune(clock.now(), 30, batch=2, max_seconds=2.5, monotonic=lambda: float(next(ticks)))
    assert (done.executions, done.complete) == (6, False)
    assert prune(clock.now(), 30, batch=2).executions == 4


def test_prune_announces_rows_before_it_deletes_them() -> None:
    rows = make_executions("succeeded", 2)
    heard: list[int] = []

    def receiver(ids: list[int], **_kwargs: object) -> None:
        heard.extend(ids)
        assert SchedulerExecution.objects.filter(pk__in=ids).count() == 2

    executions_pruned.connect(receiver)
    try:
        prune(clock.now(), 30)
    finally:
        executions_pruned.disconnect(receiver)
    assert sorted(heard) == sorted(row.pk for row in rows)


def test_the_command_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    make_executions("succeeded", 2)
    call_command("cleanup_executions", "--dry-run")
    call_command("cleanup_executions", "--days", "30")
    out = capsys.readouterr().out
    assert "Would delete 2 execution records older than 30 days" in out
    assert "Deleted 2 execution records older than 30 days (2 attempts, 2 pieces of output" in out


@pytest.mark.parametrize("arguments", [["--days", "0"], ["--max-seconds", "0"]])
def test_bad_arguments_are_refused(arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        call_command("cleanup_executions", *arguments)
