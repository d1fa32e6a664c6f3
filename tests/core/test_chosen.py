"""A consumer's choice of handlers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.core.chosen import EVERYTHING, Chosen, reason_for_left_out

NAMES = st.text(min_size=1, max_size=20)


@pytest.mark.parametrize(
    ("only", "without", "names"),
    [
        ((), (), {"reports.monthly", "reports.slow", "sync", "Sync"}),
        (("reports.*",), (), {"reports.monthly", "reports.slow"}),
        (("reports.*", "sync"), ("*.slow",), {"reports.monthly", "sync"}),
        ((), ("reports.*",), {"sync", "Sync"}),
        (("[Ss]ync",), ("s*",), {"Sync"}),
        (("report",), (), set()),
    ],
)
def test_a_name_matches_one_of_the_first_and_none_of_the_second(
    only: tuple[str, ...], without: tuple[str, ...], names: set[str]
) -> None:
    chosen = Chosen(only, without)
    assert {name for name in ("reports.monthly", "reports.slow", "sync", "Sync") if name in chosen} == names


@given(name=NAMES, patterns=st.lists(NAMES, max_size=3))
def test_each_name_is_on_one_of_two_consumers(name: str, patterns: list[str]) -> None:
    only, without = Chosen(only=tuple(patterns)), Chosen(without=tuple(patterns))
    assert not patterns or (name in only) is not (name in without)


def test_it_says_what_was_asked_for() -> None:
    assert str(Chosen(("a.*", "b"), ("a.slow",))) == "--only a.*,b --except a.slow"
    assert not EVERYTHING
    assert str(EVERYTHING) == ""
    text = reason_for_left_out("the worker 'sync'", "host-1-2", Chosen(without=("s*",)))
    assert text == "The consumer host-1-2 does not run the worker 'sync': it was started with --except s*."


def test_a_pattern_that_fits_no_name_is_found() -> None:
    assert Chosen(("a*", "c"), ("b",)).unused(["ab", "b"]) == ["c"]


PATTERN = st.text("ab*?.[]_-é ", min_size=1, max_size=6).filter(lambda text: text == text.strip())


@given(only=st.lists(PATTERN, max_size=3), without=st.lists(PATTERN, max_size=3))
def test_what_a_consumer_has_written_is_read_again(only: list[str], without: list[str]) -> None:
    chosen = Chosen(tuple(only), tuple(without))
    assert Chosen.parse(str(chosen)) == chosen


@given(st.text(max_size=40))
def test_any_other_text_chooses_everything_or_something(text: str) -> None:
    assert isinstance(Chosen.parse(text), Chosen)


@pytest.mark.parametrize("text", ["", "x", "only a", "--only", "--only ", "--except"])
def test_a_text_that_is_no_choice_stands_for_all_handlers(text: str) -> None:
    assert Chosen.parse(text) == EVERYTHING
