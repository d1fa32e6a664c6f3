"""Random arguments for the sentences that rows store."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from scheduling.core import stored_sentence as kinds
from scheduling.core.known_sentences import in_language
from scheduling.core.stored_sentence import Kind, StoredSentence, defined

ALPHABET = "ABCXYZ0189 {}()%\\$^*+[]'\"<>&ÄÖß字\n\t\u202e\u200f\U0001f600"
"""No piece of a sentence is made of these characters only."""

plain = st.text(ALPHABET, min_size=1, max_size=40).map(lambda text: f"Q{text}Q")

_zones = st.sampled_from(["UTC", "CET", "-03", "+0530", "None"])
_dates = st.dates().map(str)
_clocks = st.times().map(lambda at: f"{at:%H:%M}")

STRATEGIES: dict[str, st.SearchStrategy[str]] = {
    kinds.NUMBER.pattern: st.integers(0, 10**18).map(str) | st.integers(0, 10**15).map("{:,}".format),
    kinds.DECIMAL.pattern: st.floats(0, 1e20).map("{:g}".format),
    kinds.CLOCK.pattern: st.times().map(lambda at: f"{at:%H:%M:%S}"),
    kinds.TIME.pattern: st.datetimes().map(lambda at: f"{at:%Y-%m-%d %H:%M:%S}")
    | st.tuples(_dates, _clocks, _zones).map(" ".join),
    kinds.END.pattern: st.tuples(_clocks, _zones).map(" ".join) | st.tuples(_dates, _clocks, _zones).map(" ".join),
    kinds.WORD.pattern: st.integers(-255, 255).map(str) | st.sampled_from(["None", "time_limit"]),
}


@st.composite
def made(draw: Any, sentence: StoredSentence, texts: st.SearchStrategy[str] = plain) -> tuple[str, Mapping[str, str]]:
    """A text that the sentence has made, and its arguments.

    Args:
        texts: gives the arguments that are free text.
    """
    values = {name: draw(_argument(kind, texts)) for name, kind in sentence.kinds.items()}
    return sentence.format(**values), values


def _argument(kind: Kind, texts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    if kind.phrases:
        said = st.sampled_from(kind.phrases).flatmap(lambda phrase: made(phrase, texts)).map(lambda found: found[0])
        return said if kind.said("Q Q", 0) is None else said | texts
    if kind is kinds.SENTENCE:
        simple = [one for one in defined() if not one.names]
        return st.sampled_from(simple).map(lambda one: one.format()) | texts
    return STRATEGIES[kind.pattern] if kind.pattern else texts


def in_german(kind: Kind, value: str) -> str:
    """An argument, as the German sentence has it."""
    return kind.said(value, 0) or in_language(value)


def pieces() -> list[str]:
    """The pieces of all sentences between their arguments."""
    found = [piece for one in defined() for piece in kinds._ARGUMENT.split(one.template)[::2]]
    return sorted({piece for piece in found if piece.strip()})
