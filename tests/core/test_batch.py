"""The bounds of batches, and what a batch handler may return."""

from __future__ import annotations

import math
from typing import Any

import pytest

from scheduling.core.batch import WrongResultCount, batch_problem, error_in, results_of

SIZES = [(1, False), (2, True), (1000, True), (1001, False), (True, False), (2.0, False), ("10", False), (None, False)]
WAITS = [
    (0, True), (0.5, True), (60, True), (60.1, False), (-1, False), (math.nan, False), (math.inf, False), ("1", False),
    (None, False), (True, False),
]  # fmt: skip


@pytest.mark.parametrize(("size", "fits"), SIZES)
def test_the_bounds_of_the_size(size: Any, fits: bool) -> None:
    assert batch_problem(size, 1.0) == ("" if fits else f"batch_size is a whole number from 2 to 1,000, not {size!r}.")


@pytest.mark.parametrize(("wait", "fits"), WAITS)
def test_the_bounds_of_the_wait(wait: Any, fits: bool) -> None:
    assert batch_problem(10, wait) == ("" if fits else f"batch_wait is a number of seconds from 0 to 60, not {wait!r}.")


@pytest.mark.parametrize("returned", [None, 5, "ab", {"a": 1}, {1, 2}, iter([1, 2])])
def test_what_is_no_list_has_no_entries(returned: Any) -> None:
    assert results_of(returned, 2) is None


@pytest.mark.parametrize("returned", [[1, None], (1, None)])
def test_a_list_has_an_entry_for_each_run(returned: Any) -> None:
    assert results_of(returned, 2) == [1, None]


@pytest.mark.parametrize(("returned", "count"), [([], 2), ([1], 2), ([1, 2, 3], 2), ((), 1)])
def test_a_list_of_another_length_is_an_error_that_says_both_numbers(returned: Any, count: int) -> None:
    with pytest.raises(WrongResultCount, match=f"{len(returned)} results for {count} runs"):
        results_of(returned, count)


class NeedsWords(Exception):
    """Cannot be made without an argument."""

    def __init__(self, words: str) -> None:
        super().__init__(words)


def test_an_exception_and_its_class_are_errors_and_other_values_are_results() -> None:
    error = ValueError("odd")
    assert error_in(error) is error
    assert isinstance(error_in(KeyError), KeyError)
    assert isinstance(error_in(NeedsWords), TypeError)
    assert [error_in(value) for value in (None, 0, "ValueError", {}, int)] == [None] * 5
