"""The text of a search box: qualifiers, quotes and plain words."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from scheduling.core.search_terms import Qualifier, quoted, read_search


@pytest.mark.parametrize(
    ("text", "words", "qualifiers"),
    [
        ("", "", []),
        ("   ", "", []),
        ("order 7", "order 7", []),
        ("state:failed", "", [("state", "failed")]),
        ("State:failed no  route", "no  route", [("state", "failed")]),
        ("no route state:failed", "no route", [("state", "failed")]),
        ('schedule:"Import orders DE" error:Timeout', "", [("schedule", "Import orders DE"), ("error", "Timeout")]),
        ('schedule:"Import', "", [("schedule", '"Import')]),
        ('"state:failed"', "state:failed", []),
        ('"state:failed" x', '"state:failed" x', []),
        ('a 5" disk', 'a 5" disk', []),
        ("at 08:15", "at 08:15", []),
        ("KeyError: name", "KeyError: name", []),
        ("state: failed", "state: failed", []),
        ('state:""', 'state:""', []),
        ("https://host:80/x", "https://host:80/x", []),
        ("std::bad_alloc", "std::bad_alloc", []),
        ("x(state:failed)", "x(state:failed)", []),
        ("colour:red", "", [("colour", "red")]),
    ],
)
def test_a_search_is_read(text: str, words: str, qualifiers: list[tuple[str, str]]) -> None:
    found = read_search(text)
    assert found.words == words
    assert [(part.name, part.value) for part in found.qualifiers] == qualifiers


@given(st.text())
@example('a:"')
@example('"" ""')
def test_every_text_is_read(text: str) -> None:
    found = read_search(text)
    for part in found.qualifiers:
        assert part.written in text
        assert part.value.strip() == part.value != ""
        assert read_search(part.written).qualifiers == (part,)
    # No letter is lost: what is no qualifier is a word.
    rest = text
    for part in found.qualifiers:
        rest = rest.replace(part.written, "", 1)
    assert found.words in rest
    assert not set("".join(rest.split())) - set("".join(found.words.split())) - {'"'}


NAMES = st.text(string.ascii_lowercase, min_size=1)
VALUES = st.text(min_size=1).map(str.strip).filter(lambda text: text and '"' not in text and text[0] not in "/:")


@given(st.lists(st.tuples(NAMES, VALUES)))
def test_qualifiers_that_are_written_are_read_again(pairs: list[tuple[str, str]]) -> None:
    text = " ".join(f"{name}:{quoted(value)}" for name, value in pairs)
    written = [f"{name}:{quoted(value)}" for name, value in pairs]
    expected = [Qualifier(name, value, part) for (name, value), part in zip(pairs, written, strict=True)]
    assert list(read_search(text).qualifiers) == expected
    assert read_search(text).words == ""
