"""Retention removes only executions that ended long ago. It removes them in batches."""

from __future__ import annotations

from datetime import timedelta
from itertools import count

import pytest
from django.core.management import CommandError, call_command
from django.test import override_settings
from django.utils import timezone as clock

from scheduling.core.clock_skew import Skew
from scheduling.core.retention import Rule
from scheduling.execution.retention import Pruned, prune
from scheduling.execution.retention.api_records import remove_api_records
from scheduling.execution.retention.removal import remove
from scheduling.management.commands.cleanup_executions import Command
from scheduling.models import (
    AnsweredRequest,
    ApiToken,
    Attempt,
    Breaker,
    DeathRecord,
    HandlerSet,
    KnownHandler,
    Output,
    RunStep,
    SchedulerExecution,
)
from scheduling.processes.server_clock import ServerClock
from scheduling.signals import executions_pruned
from tests.execution.retention import keys, left, make_executions
from tests.factories import (
    AnsweredRequestFactory,
    ApiTokenFactory,
    BreakerFactory,
    DeathRecordFactory,
    HandlerSetFactory,
    ProcessFactory,
    RunStepFactory,
    SchedulerFactory,
)
from tests.support import at_once

pytestmark = pytest.mark.django_db


def test_only_executions_that_ended_long_ago_are_removed() -> None:
    old = [row for state in ("succeeded", "cancelled", "discarded", "skipped") for row in make_executions(state)]
    kept = [
        row for state in ("failed", "queued", "running", "retrying", "claimed", "odd") for row in make_executions(state)
    ]
    kept += make_executions("succeeded", age=timedelta(days=29))
    done = prune(clock.now(), 30)
    assert (done.executions, done.attempts, done.outputs, done.complete) == (4, 4, 4, True)
    assert dict(done.rules) == {Rule.SUCCESS: 1, Rule.ENDED: 3}
    assert left(old) == []
    assert left(kept) == keys(kept)
    assert Attempt.objects.count() == Output.objects.count() == len(kept)


def test_the_deaths_of_a_message_are_removed_with_its_execution() -> None:
    old, kept = (DeathRecordFactory(execution=make_executions(state)[0]) for state in ("discarded", "failed"))
    prune(clock.now(), 30, dry_run=True)
    assert DeathRecord.objects.count() == 2
    prune(clock.now(), 30)
    assert list(DeathRecord.objects.all()) == [kept] != [old]


def test_finished_steps_are_removed_with_their_execution() -> None:
    old, kept = (RunStepFactory(execution=make_executions(state)[0]) for state in ("succeeded", "failed"))
    prune(clock.now(), 30, dry_run=True)
    assert RunStep.objects.count() == 2
    prune(clock.now(), 30)
    assert list(RunStep.objects.all()) == [kept] != [old]


def test_handlers_that_no_process_knows_any_more_are_removed() -> None:
    long_ago = clock.now() - timedelta(days=31)
    unused, used, recent = (
        HandlerSetFactory(created_at=at, known={"tests.noop": "a"}) for at in (long_ago, long_ago, clock.now())
    )
    ProcessFactory(handler_set=unused, heartbeat_at=long_ago)
    ProcessFactory(handler_set=used)
    assert prune(clock.now(), 30, dry_run=True).handler_sets == 0
    assert HandlerSet.objects.count() == 3
    assert prune(clock.now(), 30).handler_sets == 1
    assert {*HandlerSet.objects.values_list("pk", flat=True)} == {used.pk, recent.pk}
    assert KnownHandler.objects.count() == 2


def test_a_dry_run_counts_and_removes_nothing() -> None:
    rows = make_executions("succeeded", 3)
    assert prune(clock.now(), 30, dry_run=True).executions == 3
    assert left(rows) == keys(rows)


def test_batches_stop_after_the_maximum_time() -> None:
    make_executions("succeeded", 10)
    ticks = count()
    done = prune(clock.now(), 30, batch=2, max_seconds=5.5, monotonic=lambda: float(next(ticks)))
    assert 0 < done.executions < 10
    assert done.complete is False
    assert prune(clock.now(), 30, batch=2).executions == 10 - done.executions


def test_a_slow_database_gets_smaller_batches() -> None:
    make_executions("succeeded", 200)
    ticks = count()
    sizes: list[int] = []

    def receiver(ids: list[int], **_kwargs: object) -> None:
        sizes.append(len(ids))

    executions_pruned.connect(receiver)
    try:
        prune(clock.now(), 30, monotonic=lambda: next(ticks) * 0.03)  # each batch takes 30 ms
    finally:
        executions_pruned.disconnect(receiver)
    assert sizes[:4] == [50, 25, 12, 10]
    assert sum(sizes) == 200


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


def test_the_last_result_of_a_schedule_is_kept_at_any_age() -> None:
    yearly, spent = SchedulerFactory(rare=True), SchedulerFactory(once=True)
    rows = make_executions("succeeded", 2, scheduler=yearly) + make_executions("succeeded", 2, scheduler=spent)
    SchedulerExecution.objects.exclude(pk__in=keys(rows)).delete()
    assert prune(clock.now()).executions == 3
    assert left(rows) == [rows[1].pk]


def test_the_catch_up_window_is_kept_whatever_the_age() -> None:
    rows = make_executions("succeeded", 2, age=timedelta(days=3))
    due_later = make_executions("succeeded", scheduled_at=clock.now() - timedelta(days=3))
    with override_settings(CRON_CATCH_UP_SECONDS=5 * 86_400):
        assert prune(clock.now(), 1, dry_run=True).executions == prune(clock.now(), 1).executions == 0
    assert left(rows) == keys(rows)
    assert prune(clock.now(), 1).executions == 3
    assert left(due_later) == []


def test_a_clock_that_is_set_back_removes_nothing() -> None:
    rows = make_executions("succeeded", 3)
    assert prune(clock.now() - timedelta(days=365), 1).executions == 0
    assert left(rows) == keys(rows)


def test_rows_of_a_clock_that_was_ahead_do_not_end_the_walk() -> None:
    """The second row was claimed in the future. The rows after it are old."""
    rows = make_executions("succeeded", 6)
    ahead = clock.now() + timedelta(days=900)
    SchedulerExecution.objects.filter(pk=rows[1].pk).update(executed_at=ahead, finished_at=ahead)
    assert prune(clock.now(), 30, batch=2).executions == 5
    assert left(rows) == [rows[1].pk]


def test_a_row_that_has_not_ended_stays_whatever_the_caller_asks_for() -> None:
    rows = [row for state in ("running", "failed", "succeeded") for row in make_executions(state)]
    done = Pruned()
    remove({row.pk: Rule.SUCCESS for row in rows}, done, dry_run=False)
    assert left(rows) == keys(rows[:2])
    assert (done.executions, Attempt.objects.count(), Output.objects.count()) == (1, 2, 2)


@pytest.mark.django_db(transaction=True)
def test_two_cleanups_at_once_remove_each_execution_once() -> None:
    rows = make_executions("succeeded", 60)
    done = at_once([lambda: prune(clock.now(), 30, batch=5)] * 2)
    # A pass leaves a row that the other one has locked. On MariaDB, both may leave the same row, if one has locked its
    # entry in an index and the other one the row. The next pass removes it.
    done.append(prune(clock.now(), 30))
    assert sum(one.executions for one in done) == 60
    assert sum(one.attempts for one in done) == sum(one.outputs for one in done) == 60
    assert left(rows) == []


def test_the_command_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    make_executions("succeeded", 2)
    call_command("cleanup_executions", "--dry-run")
    call_command("cleanup_executions", "--days", "30")
    out = capsys.readouterr().out
    assert "Would delete 2 execution records older than 30 days (2 attempts, 2 pieces of output" in out
    assert "Deleted 2 execution records older than 30 days (2 attempts, 2 pieces of output" in out
    assert "  succeeded, age of successes: 2\n" in out


@pytest.mark.parametrize("arguments", [["--days", "0"], ["--max-seconds", "0"], ["--days", str(10**12)]])
def test_bad_arguments_are_refused(arguments: list[str]) -> None:
    with pytest.raises(CommandError):
        call_command("cleanup_executions", *arguments)


class ClockAhead(ServerClock):
    """The clock of a host that is a day ahead of the database."""

    def __init__(self) -> None:
        super().__init__(ask=lambda: (clock.now(), Skew(86_400.0, 0.0)))


def test_a_wrong_clock_removes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = make_executions("succeeded", 2)
    monkeypatch.setattr(Command, "clock", ClockAhead)
    with pytest.raises(CommandError, match="clock of this host"):
        call_command("cleanup_executions")
    assert left(rows) == keys(rows)


def test_a_circuit_breaker_that_is_closed_and_unused_is_removed() -> None:
    old = clock.now() - timedelta(days=400)
    kept = [BreakerFactory(used_at=old), BreakerFactory(closed=True)]
    BreakerFactory(closed=True, used_at=old)
    assert prune(clock.now(), 30, dry_run=True).breakers == 1
    assert prune(clock.now(), 30).breakers == 1
    assert set(Breaker.objects.values_list("pk", flat=True)) == {row.pk for row in kept}


def test_the_records_of_the_api_are_removed(capsys: pytest.CaptureFixture[str]) -> None:
    now = clock.now()
    old, day = now - timedelta(days=31), timedelta(days=1)
    kept = [ApiTokenFactory(created_at=old), ApiTokenFactory(expired=True), ApiTokenFactory(revoked=True)]
    for given in ({"expires_at": old}, {"revoked_at": old}, {"expires_at": old, "permissions": "spoiled"}):
        ApiTokenFactory(**given)
    answers = [AnsweredRequestFactory(created_at=now - day + timedelta(hours=1)), AnsweredRequestFactory(status=None)]
    for _ in range(3):
        AnsweredRequestFactory(created_at=now - day - timedelta(seconds=1))
    assert (prune(now, 30, dry_run=True).tokens, prune(now, 30, dry_run=True).answers) == (3, 3)
    done = Pruned()
    remove_api_records(now - timedelta(days=30), now, done, dry_run=False, batch=2)
    assert (done.tokens, done.answers) == (3, 3)
    assert set(ApiToken.objects.all()) == set(kept)
    assert set(AnsweredRequest.objects.all()) == set(answers)
    AnsweredRequestFactory(created_at=old)
    call_command("cleanup_executions")
    assert "0 API tokens, 1 answers of the API" in capsys.readouterr().out
