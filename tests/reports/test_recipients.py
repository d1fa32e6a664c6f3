"""`read_recipients` reads e-mail addresses as operators write them, and refuses everything else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import PydanticCustomError

from reports.recipients import read_recipients


def refused(value: Any) -> str:
    """Check that the value is refused, and return the sentence."""
    with pytest.raises(PydanticCustomError) as caught:
        read_recipients(value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([], ()),
        ("", ()),
        (["a@example.com"], ("a@example.com",)),
        ("a@example.com", ("a@example.com",)),
        ("a@example.com, b@example.com\r\n c@example.com ,\n", ("a@example.com", "b@example.com", "c@example.com")),
        (["a@example.com", "", "A@Example.com "], ("a@example.com",)),
        (["a@bücher.example"], ("a@bücher.example",)),
    ],
)
def test_addresses_come_as_a_list_or_as_one_text(value: Any, expected: tuple[str, ...]) -> None:
    assert read_recipients(value) == expected


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("a", "a"),
        ("a@example.com\n", "a@example.com\n"),
        ("a@example.com\nBcc: b@example.com", "a@example.com\nBcc: b@example.com"),
        ("a@example.com\r\n", "a@example.com\n"),
        ("a@example.com; b@example.com", "a@example.com; b@example.com"),
        ("Ann <a@example.com>", "Ann <a@example.com>"),
        ('"a\x0bb"@example.com', '"a\\x0bb"@example.com'),
        ('"a b"@example.com', '"a b"@example.com'),
        ("a@example.com\x00", "a@example.com\\x00"),
        ("\ud800@example.com", "?@example.com"),
        ("a" * 400 + "@example.com", "a" * 59 + "…"),
    ],
)
def test_a_text_that_is_no_address_is_refused(address: str, shown: str) -> None:
    assert refused(["b@example.com", address]) == f'"{shown}" is not an e-mail address'


@pytest.mark.parametrize("value", [7, True, {"a@example.com": 1}, ["a@example.com", 7], [["a@example.com"]], b"a@b.c"])
def test_other_values_are_refused(value: Any) -> None:
    assert refused(value) == "must be a list of e-mail addresses, or one text with commas or line ends between them"


def test_a_hundred_addresses_are_the_most() -> None:
    addresses = [f"a{number}@example.com" for number in range(101)]
    assert read_recipients(addresses[:100] + addresses[:50]) == tuple(addresses[:100])
    assert refused(addresses) == refused(", ".join(addresses)) == "must be at most 100 e-mail addresses, not 101"


@given(st.one_of(st.text(), st.lists(st.text())))
def test_no_address_can_begin_a_new_line_or_a_new_address(value: Any) -> None:
    try:
        found = read_recipients(value)
    except PydanticCustomError:
        return
    assert not any(set(address) & set("\r\n, \x00") for address in found)
