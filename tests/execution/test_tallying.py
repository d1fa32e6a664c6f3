"""Each ended attempt is counted once: with producers that die, with several at once, and when retention removes it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models import Sum
from django.test import override_settings
from django.utils import timezone as clock

from scheduling.core.tallies import OTHER, UNREADABLE
from scheduling.execution import retention
from scheduling.execution.tallying import tally_waiting
from scheduling.models import Attempt, Tally, TallyMark, TallyTotal
from scheduling.models.tally import AMOUNTS
from tests.execution.retention import make_executions
from tests.execution.tallies import MINUTE, KillBefore, Killed, tally_all
from tests.factories import AttemptFactory, GroupFactory, SchedulerExecutionFactory
from tests.hostile.values import lenient, write
from tests.support import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def numbers(model: type[Tally | TallyTotal]) -> tuple[int, ...]:
    """The sums of the columns of `AMOUNTS`."""
    found = model._default_manager.aggregate(**{name: Sum(name) for name in AMOUNTS})
    return tuple(int(found[name] or 0) for name in AMOUNTS)


def some_attempts() -> tuple[int, ...]:
    """Make seven attempts of several series, and return their numbers."""
    first = AttemptFactory(execution__group=GroupFactory(), number=1, retry_at=clock.now())
    AttemptFactory(execution=first.execution, number=2, outcome="interrupted")
    AttemptFactory(execution=first.execution, number=3, outcome="succeeded")
    event = SchedulerExecutionFactory(succeeded=True, scheduler=None, type="worker", target_name="event")
    AttemptFactory(execution=event, number=1, outcome="succeeded", result='{"listeners": 0}')
    for queue in ("reports.high", "reports", "main"):
        AttemptFactory(execution__queue=queue)
    seconds = [row.finished_at - row.started_at for row in Attempt.objects.all()]
    return (7, sum(round(1000 * span.total_seconds()) for span in seconds), 1, 1)


def test_a_producer_that_dies_before_any_statement_loses_and_doubles_nothing() -> None:
    expected, now = some_attempts(), clock.now()
    assert tally_waiting(now) == 0, "an attempt is counted a minute after it was seen"
    died = 0
    while True:
        try:
            with connection.execute_wrapper(KillBefore(died + 1)):
                assert tally_waiting(now + MINUTE) == 7
            break
        except Killed:
            died += 1
            assert numbers(Tally) == numbers(TallyTotal) == (0, 0, 0, 0)
    assert died > 8
    assert numbers(Tally) == numbers(TallyTotal) == expected
    assert tally_all(now + 2 * MINUTE) == 0
    assert numbers(Tally) == numbers(TallyTotal) == expected
    assert set(Tally.objects.values_list("queue", flat=True)) == {"main", "reports"}
    assert Tally.objects.exclude(group=None).count() == 3
    for row in Tally.objects.filter(target="event"):
        assert (row.schedule, row.unheard, row.hour.minute) == (None, 1, 0)


def test_passes_are_bounded_and_add_up() -> None:
    expected, now = some_attempts(), clock.now()
    assert tally_waiting(now, limit=1) == 0
    assert tally_waiting(now + MINUTE - timedelta(seconds=1), limit=1) == 0
    assert tally_waiting(now + MINUTE, limit=1) == 5
    AttemptFactory()
    assert tally_waiting(now + MINUTE, limit=1) == 2, "the new one was not seen a minute ago"
    assert numbers(Tally) == numbers(TallyTotal) == expected
    assert tally_waiting(now + 2 * MINUTE + timedelta(seconds=1)) == 1


def test_two_producers_at_once_count_each_attempt_once() -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer")
    expected, now = some_attempts(), clock.now()
    assert tally_waiting(now) == 0
    counts: list[int] = []
    at_once([lambda: counts.append(tally_waiting(now + MINUTE, limit=2)) for _ in range(4)])
    counts.append(tally_waiting(now + MINUTE))
    assert sum(counts) == 7
    assert numbers(Tally) == numbers(TallyTotal) == expected


def test_retention_counts_what_it_removes_and_no_total_falls() -> None:
    now = clock.now()
    make_executions("succeeded", 3)
    young = AttemptFactory()
    assert tally_waiting(now) == 0
    retention.prune(now)
    assert Attempt.objects.count() == 1
    assert numbers(TallyTotal)[0] == 3
    assert tally_waiting(now + MINUTE) == 1
    assert numbers(TallyTotal)[0] == numbers(Tally)[0] == 4
    with override_settings(CRON_TALLY_DAYS="30"):
        assert retention.prune(now, dry_run=True).tallies == 1
        assert retention.prune(now).tallies == 1
    assert (numbers(TallyTotal)[0], numbers(Tally)[0]) == (4, 1)
    young.execution.scheduler.delete()
    assert tally_all(now + 2 * MINUTE) == 0
    assert Tally.objects.get().schedule is not None


@pytest.mark.parametrize("column", ["started_at", "finished_at", "outcome", "number"])
def test_rows_with_any_values_are_counted_and_stop_no_others(column: str) -> None:
    rows = [AttemptFactory() for _ in range(5)]
    values = {"outcome": ["\x00", "nonsense", b"\xff", "<b>"], "number": [2**31 - 1, "x", -5, 0]}
    instants: list[Any] = ["infinity", "-infinity", "0000-00-00 00:00:00", "nonsense"]
    with lenient():
        for row, value in zip(rows, values.get(column, instants), strict=False):
            write(Attempt, Attempt._meta.get_field(column), row.pk, value)
    assert tally_all(clock.now()) == 5
    assert numbers(Tally)[0] == numbers(TallyTotal)[0] == 5
    assert not Tally.objects.filter(target=UNREADABLE).exists()
    readable = Tally.objects.filter(outcome="failed").aggregate(attempts=Sum("attempts"))["attempts"]
    assert readable >= (1 if column == "outcome" else 5)


@pytest.mark.parametrize(
    "mark",
    [
        {"seen": 2**62, "seen_at": 2**62},
        {"attempt": 2**62, "seen": 2**62},
        {"attempt": 2**62},
        {"seen": 2**62, "seen_at": 1},
    ],
)
def test_a_hostile_mark_does_not_stop_the_tallies(mark: dict[str, int]) -> None:
    now = clock.now()
    AttemptFactory()
    assert tally_all(now) == 1
    TallyMark.objects.update(**mark)
    tally_all(now + 3 * MINUTE)
    AttemptFactory()
    assert tally_all(now + 6 * MINUTE) == 1
    assert numbers(TallyTotal)[0] == 2


def test_hostile_texts_become_visible_in_bounded_series() -> None:
    execution = SchedulerExecutionFactory(succeeded=True, scheduler=None, type="worker", target_name="\u202e" * 200)
    AttemptFactory(execution=execution, outcome="other")
    assert tally_all(clock.now()) == 1
    row = TallyTotal.objects.get()
    assert row.target.startswith("\\u202e")
    assert row.outcome == UNREADABLE != OTHER
