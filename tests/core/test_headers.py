"""Headers from outside are cut to what a run can have. A value of any kind raises no error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.headers import LONGEST_HEADERS, MOST_HEADERS, checked_headers, of_application, usable

ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.binary(max_size=9) | st.just("x" * 2_000),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6) | st.integers(), inner),
    max_leaves=30,
)


@given(ANY)
def test_what_is_kept_is_allowed(value: Any) -> None:
    for found in (usable(value), of_application(value)):
        assert checked_headers(found) == found == usable(found)


def test_what_fits_is_kept_in_order() -> None:
    many = {f"h{number}": "" for number in range(30)}
    assert list(usable(many)) == [f"h{number}" for number in range(MOST_HEADERS)]
    assert usable({"a": "x" * LONGEST_HEADERS, "b": 1, "c": "\x00", "d": "kept"}) == {"d": "kept"}


@pytest.mark.parametrize("name", ["x-death", "x-first-death-queue", "x-retry-count", "x-last-error", "x-failed-at"])
def test_headers_of_the_broker_and_of_this_project_are_left_out(name: str) -> None:
    assert of_application({name: "x", "x-request-id": "7", "trace": "8"}) == {"x-request-id": "7", "trace": "8"}
