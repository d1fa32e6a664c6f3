"""Plain SQL writes hostile values into every column of every table. Healthy rows beside them still run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
from django.db.models import Q
from django.utils import timezone as clock

from scheduling.handlers.targets import sync_targets
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.processes import left_out
from tests.factories import (
    ManualExecutionFactory,
    SchedulerFactory,
    due,
)
from tests.hostile import fuzz
from tests.hostile.standing_rows import BATCH, Rows, all_columns, spoil, stand
from tests.hostile.turn import turns
from tests.hostile.values import Spoiled, empty

ENDS = ("active_until", "max_runs")
"""A value in these columns can end a schedule. Then it has no next run, and nothing is wrong with it."""

pytestmark = pytest.mark.django_db(transaction=True)


def check_healthy(schedule: Scheduler, execution: SchedulerExecution, spoiled: Sequence[Spoiled]) -> None:
    """Check that the healthy schedule was claimed, that its execution ran, and that the healthy execution ran."""
    execution.refresh_from_db()
    assert (execution.state, execution.attempt) == ("succeeded", 1)
    bad = [value.pk for value in spoiled if value.table == SchedulerExecution._meta.db_table]
    own = SchedulerExecution.objects.filter(scheduler=schedule.pk, trigger="cron", state="succeeded")
    assert own.exclude(pk__in=bad).count() in {1, 2}  # a minute may begin meanwhile
    schedule.refresh_from_db(fields=["next_run_at"])
    assert schedule.next_run_at is not None
    assert schedule.next_run_at > clock.now() - timedelta(seconds=10)


def check_bad(rows: Rows, spoiled: Sequence[Spoiled], now: datetime) -> None:
    """Check that no due row is left over without a word, and that each row that was set aside has a reason."""
    changed: dict[tuple[str, int], set[str]] = defaultdict(set)
    for value in spoiled:
        changed[value.table, value.pk].add(value.column)
    executions = left_out.executions.without(SchedulerExecution.objects.all())
    waiting = Q(state__in=["queued", "claimed", "retrying", "running"], wake_at__lte=now, queue="main")
    assert list(executions.filter(waiting).values_list("pk", flat=True)) == []
    for pk, *texts in executions.filter(state="failed").values_list("pk", "error_message", "reason", "error_class"):
        own = changed[SchedulerExecution._meta.db_table, pk]
        assert any(texts) or own & {"state", "error_message", "reason", "id"}, pk
    schedules = left_out.schedules.without(Scheduler.objects.all())
    assert list(schedules.filter(next_run_at__lte=now).values_list("pk", flat=True)) == []
    aside = schedules.filter(next_run_at=None, status=True, plan_error="", pk__in=rows[Scheduler])
    for pk in aside.values_list("pk", flat=True):
        assert changed[Scheduler._meta.db_table, pk] & {"next_run_at", "status", "plan_error", *ENDS}, pk


@pytest.mark.long
def test_hostile_values_stop_no_other_row(caplog: pytest.LogCaptureFixture) -> None:
    pick, amount = fuzz.generator("values"), fuzz.amount(fuzz.VALUES, 200)
    source, stored, tried, batches, columns_seen = all_columns(pick), 0, 0, 0, set()
    while stored < amount:
        empty()
        sync_targets()
        now = clock.now()
        rows = stand(now)
        spoiled = spoil(pick, source, rows)
        schedule = due(SchedulerFactory(schedule="* * * * *", handler="tests.mark"), now - timedelta(seconds=5))
        execution = ManualExecutionFactory(scheduler=schedule, wake_at=now - timedelta(minutes=4))
        said = f"seed {fuzz.choose_seed()}, batch {batches}: " + "; ".join(map(str, spoiled))
        try:
            turns(now, {execution.execution_key})
            check_healthy(schedule, execution, spoiled)
            check_bad(rows, spoiled, now)
        except Exception as error:
            raise AssertionError(said) from error
        left_out.executions.clear()
        left_out.schedules.clear()
        caplog.clear()
        columns_seen |= {(value.table, value.column) for value in spoiled}
        stored, tried, batches = stored + len(spoiled), tried + BATCH, batches + 1
    empty()
    sync_targets()
    fuzz.report("values", stored=stored, refused=tried - stored, columns=len(columns_seen), batches=batches)
