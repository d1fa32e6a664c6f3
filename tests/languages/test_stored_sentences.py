"""Sentences that rows store are known again, and given in the language of the reader."""

from __future__ import annotations

import time

import pytest
from django.utils import translation
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.core.known_sentences import in_language
from scheduling.core.stored_sentence import StoredPhrase, StoredSentence, defined
from tests.languages.stored_arguments import in_german, made, pieces
from tests.support import examples

SENTENCES = defined()

own_texts = st.lists(st.sampled_from(pieces()) | st.text(max_size=5), max_size=6).map("".join)
"""Texts of users that have pieces of our sentences."""


def german(text: str) -> str:
    with translation.override("de"):
        return in_language(text)


@pytest.mark.long
@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda one: one.template)
@settings(examples(24), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_each_sentence_is_known_and_keeps_its_arguments(sentence: StoredSentence, data: st.DataObject) -> None:
    text, values = data.draw(made(sentence))
    assert sentence.arguments(text) == values
    said = german(text)
    assert said != text
    with translation.override("de"):
        for name, value in values.items():
            assert in_german(sentence.kinds[name], value) in said


@pytest.mark.long
@pytest.mark.parametrize("sentence", SENTENCES, ids=lambda one: one.template)
@settings(examples(24), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_no_argument_hides_a_sentence(sentence: StoredSentence, data: st.DataObject) -> None:
    marks = iter(f"⟦{number}⟧" for number in range(1_000))
    texts = own_texts.map(lambda text: text + next(marks))
    text, _values = data.draw(made(sentence, texts))
    said = german(text)
    assert said != text
    assert all(f"⟦{number}⟧" in said for number in range(1_000) if f"⟦{number}⟧" in text)


@examples(500)
@given(st.text() | st.text("Missed Lft out,becaus.:% (){}\n\u202e1234567890"))
def test_other_texts_stay(text: str) -> None:
    assert german(text) == text


@pytest.mark.parametrize("text", [
    "", "Missed", "Left out", "Paused", "Cancelled by ", "the warehouse is closed", "no producer was running",
    "Missed 5 occurrences: for another reason.", "Held back.", "1 day", "Left out, because execution 5 was not over",
    "It ran longer than its time limit of soon s and was ended.", "ValueError: the invoice has no total",
])  # fmt: skip
def test_words_of_a_handler_stay(text: str) -> None:
    assert german(text) == text


@pytest.mark.parametrize("language", ["en", "en-gb", "fr", None])
def test_all_other_languages_are_english(language: str | None) -> None:
    with translation.override(language):
        assert in_language("Retries are off.") == "Retries are off."


def test_what_is_no_text_stays() -> None:
    with translation.override("de"):
        assert in_language(b"Retries are off.") == b"Retries are off."  # type: ignore[arg-type]
        assert in_language(None) is None  # type: ignore[arg-type]


def test_a_sentence_within_a_sentence() -> None:
    where = "It waited 5 minutes for its turn: It waits until execution 7 is over."
    assert german(f"Expired: it had not started 1 day after it was due. {where}") == (
        "Abgelaufen: Der Lauf hatte 1 Tag nach der Fälligkeit noch nicht begonnen. Er wartete 5 Minuten darauf, "
        "an der Reihe zu sein: Der Lauf wartet, bis Ausführung 7 beendet ist."
    )
    assert german("Missed 3 occurrences from 2026-03-10 02:10 to 2026-03-10 02:30 CET: no producer was running.") == (
        "Verpasst, 3 Termine von 2026-03-10 02:10 bis 2026-03-10 02:30 CET: kein Producer lief."
    )
    assert german("Crashed: The child process was ended by signal 15 (TERM).") == (
        "Crashed: Der Kindprozess wurde durch Signal 15 (TERM) beendet."
    )


HOSTILE = [
    *(piece * (100_000 // len(piece)) for piece in pieces()),
    *(begin + " from 2026-03-10 02:10 to 07:30 CET: " * 2_700 for begin in ("Paused by ", "Paused by x")),
    "Waits for “" + "” (schedule 1): its run of 2026-03-10 02:10 CET " * 2_000,
    "It has snoozed 1 times. The last reason: " * 2_400,
    "The canary failed: " * 5_000,
    "A: " * 33_000,
    "9" * 100_000,
    "%(by)s {by} \u202e\n" * 6_000,
    " (calendar “”)" * 7_000,
]


def test_a_hostile_text_costs_little() -> None:
    begin = time.process_time()
    with translation.override("de"):
        for text in HOSTILE:
            in_language(text)
            in_language(f"{text}.")
    assert (time.process_time() - begin) / len(HOSTILE) < 0.1


def test_a_page_of_rows_costs_little() -> None:
    rows = [f"Left out, because execution {number} was not over." for number in range(50)]
    rows += [f"HTTPError: the server {number} said no. " * 5 for number in range(50)]
    german(rows[0])
    begin = time.process_time()
    with translation.override("de"):
        for row in rows:
            in_language(row)
    assert time.process_time() - begin < 0.1


def test_a_phrase_is_no_sentence() -> None:
    phrase = StoredPhrase("a phrase of this test alone")
    assert phrase not in defined()
    assert phrase.arguments("a phrase of this test alone") == {}
