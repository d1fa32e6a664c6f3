"""What a backfill does with an instant, and how it stores its instants."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.backfill import Standing, digest, read, standing, step_of, stored
from tests.support import examples

WHOLE = st.datetimes(datetime(1900, 1, 1), datetime(2999, 1, 1), timezones=st.just(UTC)).map(
    lambda instant: instant.replace(microsecond=0)
)


@pytest.mark.parametrize(
    ("ran", "made", "also_ran", "wanted"),
    [
        (False, False, False, Standing.NEW),
        (True, False, False, Standing.RAN),
        (True, False, True, Standing.NEW),
        (False, True, False, Standing.MADE),
        (True, True, True, Standing.MADE),
        (False, True, True, Standing.MADE),
    ],
)
def test_an_instant_runs_if_nothing_has_run_for_it(ran: bool, made: bool, also_ran: bool, wanted: Standing) -> None:
    assert standing(ran=ran, made=made, also_ran=also_ran) is wanted


@examples(100)
@given(instants=st.lists(WHOLE, max_size=20), newest_first=st.booleans())
def test_stored_instants_are_read_in_their_order(instants: list[datetime], newest_first: bool) -> None:
    assert read(stored(instants, newest_first=newest_first)) == sorted(set(instants), reverse=newest_first)


@pytest.mark.parametrize("damaged", [None, {}, "1", [1, None], [1.5], [True], ["1"], [[1]], [10**18]])
def test_a_damaged_list_is_refused(damaged: object) -> None:
    with pytest.raises((TypeError, OverflowError)):
        read(damaged)  # type: ignore[arg-type]


def test_the_rate_is_bounded_even_if_plain_sql_has_written_it() -> None:
    assert [step_of(number).total_seconds() for number in (-5, 0, 1, 60, 10**9)] == [60, 60, 60, 1, 0.01]


def test_the_digest_tells_plans_apart() -> None:
    found = {digest(plan) for plan in ([], [(1, [5])], [(1, [5, 6])], [(2, [5])], [(1, [5]), (2, [5])])}
    assert len(found) == 5
    assert step_of(60) == timedelta(seconds=1)
