"""The audit of occurrences finds each gap and each double, and nothing else."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from scheduling.core.due_history import Times, expected, last_counted
from scheduling.core.occurrence_audit import Counting, Fault, Need, faults, instant_of, micros
from tests.hostile.fuzz import choose_seed

MAY_1 = datetime(2026, 5, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAILY = {"schedule": "0 12 * * *"}
HOURLY = {"schedule": "0 * * * *"}


def must(*instants: int) -> list[tuple[int, Need]]:
    return [(instant, Need.MUST) for instant in instants]


@pytest.mark.parametrize(
    ("due", "rows", "counting", "found"),
    [
        (must(1, 2, 3), [1, 2, 3], [], []),
        (must(1, 2, 3), [1, 3], [], [(Fault.GAP, 2)]),
        (must(1, 2, 3), [1, 2, 2, 3], [], [(Fault.TWICE, 2)]),
        (must(1, 2), [1, 2, 9], [], [(Fault.NOT_DUE, 9)]),
        (must(1, 3), [1, 2, 3], [], [(Fault.NOT_DUE, 2)]),
        (must(1, 2, 3, 4), [1, 4], [Counting(1, 3, 3)], []),
        (must(1, 2, 3, 4), [1], [Counting(1, 3, 3)], [(Fault.GAP, 4)]),
        (must(1, 2, 3, 4), [1, 3, 4], [Counting(1, 3, 3)], [(Fault.COUNTED, 3)]),
        # A run that was not over: its skipped row counts 1, 4 and 5. What was missed meanwhile has a row of its own.
        (must(1, 2, 3, 4, 5, 6), [1, 2, 6], [Counting(1, None, 3), Counting(2, 3, 2)], []),
        (must(1, 2, 3), [1], [Counting(1, None, 2)], [(Fault.GAP, 3)]),
        ([(1, Need.MUST), (2, Need.MAY), (3, Need.MAY), (4, Need.MUST)], [1, 4], [], []),
        ([(1, Need.MUST), (2, Need.UNSURE), (3, Need.MUST)], [1, 2, 3], [], []),
        ([(1, Need.MUST), (2, Need.UNSURE), (3, Need.MUST)], [1, 3], [], []),
        (must(5, 6), [5, 6], [Counting(1, 4, 4)], []),
        ([], [], [], []),
    ],
)
def test_faults(
    due: list[tuple[int, Need]], rows: list[int], counting: list[Counting], found: list[tuple[Fault, int]]
) -> None:
    assert list(faults(due, rows, counting)) == found


def test_the_instants_follow_the_times_that_held() -> None:
    history = [
        Times(1, MAY_1, HOURLY, "UTC", is_active=True),
        Times(2, MAY_1 + 3 * HOUR, HOURLY, "UTC", is_active=False),
        Times(3, MAY_1 + 5 * HOUR, DAILY, "UTC", is_active=True),
    ]
    found = [(instant_of(at), need) for at, need in expected(history, MAY_1, MAY_1 + 24 * HOUR)]
    hours = [(1, Need.MUST), (2, Need.MUST), (3, Need.MUST), (4, Need.MAY), (5, Need.MAY), (12, Need.MUST)]
    assert found == [(MAY_1 + hour * HOUR, need) for hour, need in hours]


def test_what_was_due_at_a_change_may_have_run_by_both_plans() -> None:
    """No producer ran from 2:00 on, and an edit came at 5:30."""
    changed = Times(
        2, MAY_1 + 5.5 * HOUR, {"schedule": "30 * * * *"}, "UTC", is_active=True, unsure_from=MAY_1 + 2 * HOUR
    )
    history = [Times(1, MAY_1, HOURLY, "UTC", is_active=True), changed]
    found = {instant_of(at) - MAY_1: need for at, need in expected(history, MAY_1, MAY_1 + 7 * HOUR)}
    assert found[1 * HOUR] is Need.MUST
    assert {found[hour * HOUR] for hour in (2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5)} == {Need.UNSURE}
    assert found[6.5 * HOUR] is Need.MUST
    assert len(found) == 10


def test_times_that_cannot_be_used_have_no_instants() -> None:
    for state in ({}, {"schedule": "61 * * * *"}, {"schedule": 5}, {"date_time": "soon"}, {"date_time": 3}):
        assert list(expected([Times(1, MAY_1, state, "UTC", is_active=True)], MAY_1, MAY_1 + 24 * HOUR)) == []
    assert list(expected([Times(1, MAY_1, HOURLY, "Mars/Phobos", is_active=True)], MAY_1, MAY_1 + HOUR)) == []


def test_the_last_one_that_a_row_counts() -> None:
    times = Times(1, MAY_1, HOURLY, "UTC", is_active=True)
    assert [last_counted([times], times, MAY_1, count) for count in (1, 2, 5)] == [
        micros(MAY_1 + hours * HOUR) for hours in (0, 1, 4)
    ]


def test_random_histories_with_random_faults() -> None:
    """Each instant of a history gets a row, or is counted by one. Then rows are taken away, doubled and added."""
    generator = random.Random(choose_seed())
    for _round in range(40):
        due = sorted(generator.sample(range(10, 100_000, 10), 300))
        rows, counting, place = list[int](), list[Counting](), 0
        alone = list[int]()
        while place < len(due):
            size = generator.choice([1, 1, 1, 2, 5])
            part = due[place : place + size]
            rows.append(part[0])
            if len(part) > 1:
                counting.append(Counting(part[0], part[-1], len(part)))
            else:
                alone.append(part[0])
            place += size
        assert list(faults(must(*due), rows, counting)) == []
        gone, twice = set(generator.sample(alone, 5)), set(generator.sample(rows, 5))
        strangers = {at + 5 for at in generator.sample(due, 5)}
        twice -= gone
        broken = sorted([*(row for row in rows if row not in gone), *twice, *strangers])
        wanted = {(Fault.GAP, at) for at in gone} | {(Fault.TWICE, at) for at in twice}
        wanted |= {(Fault.NOT_DUE, at) for at in strangers}
        found = list(faults(must(*due), broken, counting))
        assert len(found) == len(set(found))
        assert set(found) == wanted
