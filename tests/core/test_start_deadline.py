"""When an occurrence expires, and when a schedule is paused by its own rule."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.core.lifecycle import State
from scheduling.core.overlap import Overlap, Turn, turn
from scheduling.core.run_bounds import fails_in_a_row, is_bound, ran_often, runs_before
from scheduling.core.skip_reasons import expired, is_on_purpose
from scheduling.core.start_deadline import FOR_A_PRODUCER, start_by, where_it_waits
from tests.support import NOON


def test_the_deadline_counts_from_the_due_instant() -> None:
    assert start_by(NOON, 90) == NOON + timedelta(seconds=90)


@pytest.mark.parametrize("value", [None, 0, -1, 366 * 86_400 + 1, "90", 1.5, True])
def test_what_is_no_number_of_seconds_is_no_deadline(value: object) -> None:
    assert start_by(NOON, value) is None


def test_the_sentence_says_how_long_it_waited_and_where() -> None:
    minute = timedelta(minutes=1)
    said = expired(5 * minute, 5 * minute + timedelta(seconds=0.4), FOR_A_PRODUCER)
    assert (
        said
        == "Expired: it had not started 5 minutes after it was due. It waited 5 minutes until a producer claimed it."
    )
    where = where_it_waits(State.QUEUED, "main", "")
    assert expired(minute, 90 * minute, where).endswith("It waited 90 minutes in the queue main for a free consumer.")
    where = where_it_waits(State.CLAIMED, "main", "Paused by ann.")
    assert expired(minute, minute, where).endswith("It waited 1 minute in the queue main: Paused by ann.")
    where = where_it_waits(State.BLOCKED, "main", "It waits until execution 7 is over.")
    said = expired(minute, minute, where)
    assert said.endswith("It waited 1 minute for its turn: It waits until execution 7 is over.")
    assert not is_on_purpose(said)


@pytest.mark.parametrize(
    ("counted", "counted_for", "most", "before"),
    [
        (0, None, 3, 0),
        (2, 3, 3, 2),
        (3, 3, 3, 0),  # it has been resumed after its last run
        (2, 3, 5, 0),  # the number has been changed
        (-1, 3, 3, 0),
        ("2", 3, 3, 0),
    ],
)
def test_the_count_of_runs_begins_anew(counted: object, counted_for: object, most: int, before: int) -> None:
    assert runs_before(counted, counted_for, most) == before


def test_bounds_are_whole_numbers() -> None:
    assert [value for value in (0, 1, 10**9, 10**9 + 1, None, "3", True, 2.0) if is_bound(value)] == [1, 10**9]
    assert (ran_often(1), ran_often(1_000)) == ("It has run once.", "It has run 1,000 times.")


@pytest.mark.parametrize(
    ("failed", "most", "pauses"),
    [
        ([True, True], 2, True),
        ([True], 2, False),
        ([True, False], 2, False),
        ([False, True, True], 2, False),
        ([True, True, False], 2, True),
        ([], 0, False),
        ([True], None, False),
        ([True] * 200, 101, False),
    ],
)
def test_failures_in_a_row_pause(failed: list[bool], most: object, pauses: bool) -> None:
    assert fails_in_a_row(failed, most) is pauses


@pytest.mark.parametrize("policy", [*Overlap, "unknown"])
@pytest.mark.parametrize("service", [False, True])
def test_a_new_execution_starts_if_no_other_one_is_open(policy: str, service: bool) -> None:
    assert turn(policy, service, is_open=False) is Turn.STARTS
    waits = {Overlap.WAIT: Turn.WAITS, Overlap.REPLACE: Turn.WAITS, Overlap.ALLOW: Turn.STARTS}
    assert turn(policy, service, is_open=True) is (Turn.LEFT_OUT if service else waits.get(policy, Turn.LEFT_OUT))  # type: ignore[call-overload]
