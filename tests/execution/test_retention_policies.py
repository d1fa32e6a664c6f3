"""Each schedule may have its own retention: ages of successes, failures and output, and a number of runs to keep."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import DatabaseError, connection, transaction
from django.test import override_settings
from django.utils import timezone as clock

from scheduling.core.retention import Rule
from scheduling.execution.retention import prune
from scheduling.execution.retention.by_schedule import executions_of, newest_first
from scheduling.execution.retention.policies import edge_of
from scheduling.models import Output, Scheduler, SchedulerExecution
from tests.execution.retention import keys, left, make_executions
from tests.factories import ManualExecutionFactory, SchedulerFactory
from tests.reports.support import artefact_of

pytestmark = pytest.mark.django_db

TEN = timedelta(days=10)


def with_output() -> set[int]:
    return set(Output.objects.values_list("execution", flat=True))


def test_a_schedule_overrides_the_ages_of_the_settings() -> None:
    short = make_executions("succeeded", 2, TEN, SchedulerFactory(rare=True, keep_success_days=5))
    long = make_executions("succeeded", 2, scheduler=SchedulerFactory(rare=True, keep_success_days=300))
    other = make_executions("succeeded", 2, TEN)
    skipped = make_executions("skipped", 1, TEN, SchedulerFactory(rare=True, keep_success_days=5))
    dry = prune(clock.now(), dry_run=True)
    assert prune(clock.now()).rules == dry.rules == {Rule.SUCCESS: 2}
    assert left(short) == []
    assert [left(rows) == keys(rows) for rows in (long, other, skipped)] == [True, True, True]


def test_successes_and_other_ends_have_different_ages() -> None:
    succeeded, cancelled = make_executions("succeeded", age=TEN), make_executions("cancelled", age=TEN)
    with override_settings(CRON_RETENTION_SUCCESS_DAYS="5"):
        assert prune(clock.now()).rules == {Rule.SUCCESS: 1}
    assert left(succeeded + cancelled) == keys(cancelled)


def test_only_the_newest_runs_of_a_schedule_are_kept() -> None:
    row = SchedulerFactory(rare=True, keep_count=4)
    rows = make_executions("succeeded", 8, TEN, row)  # a newer execution follows
    SchedulerExecution.objects.filter(pk=rows[0].pk).update(state="failed")
    SchedulerExecution.objects.filter(pk=rows[1].pk).update(state="running")
    other = make_executions("succeeded", 8, TEN)
    assert prune(clock.now(), dry_run=True).rules == {Rule.COUNT: 3}
    assert prune(clock.now(), batch=2).rules == {Rule.COUNT: 3}
    assert left(rows) == [rows[0].pk, rows[1].pk, *keys(rows[5:])]
    assert left(other) == keys(other)
    assert prune(clock.now()).executions == 0


def test_the_catch_up_window_is_kept_whatever_the_count() -> None:
    row = SchedulerFactory(rare=True, keep_count=1)
    young = make_executions("succeeded", 5, timedelta(hours=23), row)
    assert prune(clock.now()).executions == 0
    assert left(young) == keys(young)


def test_the_count_of_the_settings_applies_to_each_schedule_and_to_each_target() -> None:
    scheduled = [make_executions("succeeded", 5, TEN) for _ in range(2)]
    own = make_executions("succeeded", 5, TEN, SchedulerFactory(rare=True, keep_count=100))
    targets = [
        make_executions("succeeded", 5, TEN, scheduler_id=None, type="worker", target_id=number) for number in (1, 2)
    ]
    failed = make_executions("failed", 5, TEN, scheduler_id=None, type="worker", target_id=3)
    with override_settings(CRON_RETENTION_KEEP="3"):
        assert prune(clock.now(), dry_run=True).rules == {Rule.COUNT: 10}
        assert prune(clock.now(), batch=2).rules == {Rule.COUNT: 10}
    assert [left(rows) == keys(rows[3:]) for rows in scheduled] == [True, True]
    assert [left(rows) == keys(rows[2:]) for rows in targets] == [True, True]
    assert left(own + failed) == keys(own + failed)


def test_an_execution_is_counted_for_one_rule_only() -> None:
    make_executions("succeeded", 5, scheduler_id=None, type="worker", target_id=1)
    row = SchedulerFactory(rare=True)
    make_executions("succeeded", 3, scheduler=row)
    make_executions("succeeded", 3, TEN, row)
    with override_settings(CRON_RETENTION_KEEP="2", CRON_RETENTION_OUTPUT_DAYS="20"):
        dry = prune(clock.now(), dry_run=True)
        assert dry.rules == {Rule.SUCCESS: 8, Rule.COUNT: 2}
        assert prune(clock.now()).rules == dry.rules


def test_output_and_artefacts_go_before_their_execution(settings: Any, tmp_path: Any) -> None:
    settings.MEDIA_ROOT = tmp_path
    old, young = make_executions("succeeded", 2, TEN), make_executions("succeeded", 1, timedelta(days=2))
    kept = make_executions("failed", 1, TEN) + make_executions("running", 1, TEN)
    artefact_of(old[0])
    Output.objects.filter(execution=old[0]).delete()  # it has only a file
    with override_settings(CRON_RETENTION_OUTPUT_DAYS="5"):
        assert prune(clock.now(), dry_run=True).rules == {Rule.OUTPUT: 2}
        assert list(tmp_path.rglob("*.csv"))
        assert prune(clock.now()).rules == {Rule.OUTPUT: 2}
        assert prune(clock.now()).rules == {}
    assert list(tmp_path.rglob("*.csv")) == []
    assert with_output() == {*keys(young), *keys(kept)}
    assert left(old) == keys(old)


def test_a_schedule_has_its_own_age_of_output() -> None:
    own = make_executions("succeeded", 2, TEN, SchedulerFactory(rare=True, keep_output_days=3))
    long = make_executions("succeeded", 2, TEN, SchedulerFactory(rare=True, keep_output_days=30))
    assert prune(clock.now()).rules == {Rule.OUTPUT: 2}
    assert with_output() == {*keys(own), *keys(long)} - {*keys(own)}
    with override_settings(CRON_RETENTION_OUTPUT_DAYS="5"):
        prune(clock.now())
    assert with_output() == {*keys(long)}
    assert left(own) == keys(own)


def test_the_output_of_the_last_result_is_removed_by_its_age() -> None:
    row = SchedulerFactory(rare=True, keep_output_days=3)
    rows = make_executions("succeeded", 2, scheduler=row)
    SchedulerExecution.objects.filter(scheduler=row).exclude(pk__in=keys(rows)).delete()
    assert prune(clock.now()).rules == {Rule.SUCCESS: 1, Rule.OUTPUT: 1}
    assert left(rows) == [rows[1].pk]
    assert with_output() == set()


@pytest.mark.parametrize("column", ["keep_success_days", "keep_failed_days", "keep_output_days", "keep_count"])
@pytest.mark.parametrize("value", [0, -1, 32_768, 10**30])
def test_a_value_out_of_bounds_is_refused_at_save(column: str, value: int) -> None:
    with pytest.raises(ValidationError) as caught:
        SchedulerFactory(rare=True, **{column: value})
    assert caught.value.message_dict[column] == ["It must be a whole number from 1 to 32767."]


@pytest.mark.parametrize("value", [0, "-7", "x", 0.5])
def test_a_schedule_with_a_value_that_sql_wrote_keeps_everything(value: Any, caplog: pytest.LogCaptureFixture) -> None:
    row = SchedulerFactory(rare=True, keep_success_days=3)
    rows, other = make_executions("succeeded", 3, scheduler=row), make_executions("succeeded", 2)
    table = connection.ops.quote_name(Scheduler._meta.db_table)
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("PRAGMA ignore_check_constraints = ON")
        try:
            with transaction.atomic():
                cursor.execute(f"UPDATE {table} SET keep_success_days = %s WHERE id = %s", [value, row.pk])
        except DatabaseError as error:
            pytest.skip(f"refused by {connection.vendor}: {error}")
        finally:
            if connection.vendor == "sqlite":
                cursor.execute("PRAGMA ignore_check_constraints = OFF")
    stored = Scheduler.objects.filter(pk=row.pk).values_list("keep_success_days", flat=True)[0]
    if type(stored) is int and stored > 0:
        pytest.skip(f"{connection.vendor} stored {stored}")
    assert prune(clock.now()).rules == {Rule.SUCCESS: 2}
    assert left(rows + other) == keys(rows)
    assert "its own retention cannot be used" in caplog.text


@pytest.mark.django_db(transaction=True)  # ANALYZE commits on MariaDB
def test_the_walks_of_a_schedule_use_its_index() -> None:
    if connection.vendor == "mysql" and not connection.mysql_is_mariadb:
        pytest.skip("MySQL sorts so few rows itself, or walks all of them, because its estimate of the cost says so")
    schedules = [SchedulerFactory(rare=True) for _ in range(30)]
    for scheduler in schedules:
        ManualExecutionFactory.bulk(100, scheduler=scheduler, state="succeeded", finished_at=clock.now())
    alone = SchedulerExecution.objects.filter(scheduler__in=schedules[20:])
    alone.update(scheduler=None)
    row = schedules[3].pk
    with connection.cursor() as cursor:
        table = SchedulerExecution._meta.db_table
        cursor.execute(f"ANALYZE TABLE {table}" if connection.vendor == "mysql" else f"ANALYZE {table}")
    for query in (
        executions_of(row).order_by("-pk").values("pk")[:50],
        executions_of(row).filter(pk__gt=5).order_by("pk").values("pk", "state")[:50],
        executions_of(None).order_by(*newest_first()).values("pk", "state")[:50],
        executions_of(None).filter(pk__lt=2**40).order_by(*newest_first()).values("pk", "state")[:50],
    ):
        plan = query.explain()
        assert "scheduling_exec_scheduler" in plan, plan
        assert "filesort" not in plan, plan
        assert "Sort" not in plan, plan
    assert edge_of(row, 100) == SchedulerExecution.objects.filter(scheduler=row).order_by("pk")[0].pk
    assert edge_of(row, 101) is None
