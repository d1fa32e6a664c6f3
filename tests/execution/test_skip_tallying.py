"""Each skipped occurrence is counted once, and each failed attempt by its reason, also after retention."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import Sum
from django.utils import timezone as clock

from scheduling.core.tallies import MOST_REASONS, OTHER, UNREADABLE
from scheduling.execution import retention
from scheduling.execution.claim import claim_due
from scheduling.execution.insert import insert, skipped
from scheduling.execution.skip_tallying import tally_skips
from scheduling.execution.tallying import tally_waiting
from scheduling.models import Attempt, SchedulerExecution, Tally, TallyTotal, UncountedSkip
from tests.execution.retention import make_executions
from tests.execution.tallies import MINUTE, KillBefore, Killed, tally_all
from tests.factories import (
    AttemptFactory,
    GroupFactory,
    SchedulerExecutionFactory,
    SchedulerFactory,
    UncountedSkipFactory,
    due,
)
from tests.hostile.values import lenient, write
from tests.support import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def skips() -> Counter[str]:
    """The skipped occurrences of all tallies, by reason."""
    rows = Tally.objects.filter(skips__gt=0).order_by().values_list("reason").annotate(left=Sum("skips"))
    return Counter({reason: int(left) for reason, left in rows})


def test_each_skipped_occurrence_is_counted_also_those_that_an_earlier_row_counts() -> None:
    group = GroupFactory()
    row = SchedulerFactory(schedule="* * * * *", handler="tests.noop", overlap="skip", group=group)
    now = clock.now().replace(second=30, microsecond=0)
    for minutes in range(5):
        due(row, (now + timedelta(minutes=minutes)).replace(second=0))
        claim_due(now + timedelta(minutes=minutes), embedded=True)
    record = SchedulerExecution.objects.get(state="skipped")
    assert record.missed == 4
    assert tally_skips(now) == 4
    assert skips() == {"overlap": 4}
    assert tally_skips(now) == 0
    tally = Tally.objects.get()
    assert (tally.schedule, tally.target, tally.group, tally.attempts) == (row.pk, "tests.noop", group.pk, 0)
    assert not TallyTotal.objects.exists(), "the counters for Prometheus count attempts"


def test_missed_occurrences_count_with_their_number_and_reason() -> None:
    row = SchedulerFactory(schedule="*/10 * * * *", handler="tests.noop")
    now = clock.now().replace(minute=5, second=0, microsecond=0)
    due(row, now - timedelta(minutes=65))
    claim_due(now, embedded=True)
    off = SchedulerFactory(schedule="* * * * *", handler="tests.noop")
    due(off, now)
    type(off).objects.filter(pk=off.pk).update(status=False, planned_status=True)
    claim_due(now, embedded=True)
    assert tally_skips(now) == 2
    assert skips() == {"no_producer": 6, "paused": 1}


def test_an_occurrence_that_is_on_record_is_not_noted_again() -> None:
    row = SchedulerExecutionFactory(skipped=True)
    copy = SchedulerExecution(
        scheduler_id=row.scheduler_id, execution_key=row.execution_key, scheduled_at=row.scheduled_at,
        trigger=row.trigger, type=row.type, target_name=row.target_name, executed_at=row.executed_at,
        container_id="x", **skipped(clock.now(), "Paused."),
    )  # fmt: skip
    assert not insert([copy])
    assert not UncountedSkip.objects.exists()


def test_a_producer_that_dies_before_any_statement_loses_and_doubles_no_skip() -> None:
    now = clock.now()
    UncountedSkipFactory.create_batch(3, number=2)
    UncountedSkipFactory(reason="paused", target="another")
    died = 0
    while True:
        try:
            with connection.execute_wrapper(KillBefore(died + 1)):
                assert tally_skips(now) == 4
            break
        except Killed:
            died += 1
            assert (sum(skips().values()), UncountedSkip.objects.count()) == (0, 4)
    assert died > 5
    assert skips() == {"no_producer": 6, "paused": 1}


def test_two_producers_at_once_count_each_skip_once() -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer")
    now = clock.now()
    UncountedSkipFactory.create_batch(20)
    tally_waiting(now)
    at_once([lambda: [tally_skips(now, limit=3) for _ in range(3)] for _ in range(4)])
    while tally_skips(now, limit=3):
        pass
    assert skips() == {"no_producer": 20}


@pytest.mark.parametrize("column", ["at", "number", "reason", "type", "target", "queue", "schedule", "group"])
def test_a_note_with_any_value_is_counted_and_stops_no_others(column: str) -> None:
    rows = UncountedSkipFactory.create_batch(4)
    with lenient():
        for row, value in zip(rows, [b"\xff", "\u202e<b>", 2**62, -1], strict=True):
            write(UncountedSkip, UncountedSkip._meta.get_field(column), row.pk, value)
    assert tally_skips(clock.now()) == 4
    assert sum(skips().values()) >= 4
    assert not UncountedSkip.objects.exists()


def test_failed_attempts_are_counted_by_reason_and_still_told_after_retention() -> None:
    now = clock.now()
    first = AttemptFactory(number=1, error_class="app.Timeout", retry_at=now)
    AttemptFactory(execution=first.execution, number=2, error_class="app.Timeout")
    AttemptFactory(outcome="timed_out", error_class="")
    AttemptFactory(outcome="skipped")
    AttemptFactory(outcome="succeeded", error_class="")
    make_executions("succeeded", 2)
    assert tally_all(now) == 7
    assert retention.prune(now + timedelta(days=300)).attempts >= 2
    told: dict[str, tuple[int, ...]] = {
        reason: tuple(map(int, sums))
        for reason, *sums in Tally.objects.order_by()
        .values_list("reason")
        .annotate(a=Sum("attempts"), f=Sum("failures"), s=Sum("skips"))
    }
    assert told == {"app.Timeout": (2, 1, 0), "timed_out": (1, 1, 0), "not_needed": (1, 0, 1), "": (3, 0, 0)}


def test_an_hour_has_a_limited_number_of_reasons() -> None:
    now = clock.now()
    rows = [AttemptFactory(error_class=f"made.Class{number}") for number in range(MOST_REASONS + 3)]
    for _ in range(2):
        assert tally_all(now) == len(rows)
        now += 3 * MINUTE
        rows = [AttemptFactory(error_class=f"made.Later{number}") for number in range(2)]
    reasons = set(Tally.objects.values_list("reason", flat=True))
    assert len(reasons) <= 2 * (MOST_REASONS + 1)
    assert OTHER in reasons
    assert Tally.objects.filter(reason=OTHER).aggregate(n=Sum("attempts"))["n"] >= 3


@pytest.mark.parametrize("value", [b"\xff", "\u202e" * 150, "", "\x00"])
def test_hostile_classes_of_errors_become_visible_reasons(value: Any) -> None:
    attempt = AttemptFactory()
    with lenient():
        write(Attempt, Attempt._meta.get_field("error_class"), attempt.pk, value)
    assert tally_all(clock.now()) == 1
    reason = Tally.objects.get().reason
    assert reason.isprintable()
    assert reason not in ("", UNREADABLE)
