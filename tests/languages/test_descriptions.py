"""Cron expressions and intervals are described in the language of the reader."""

from __future__ import annotations

import pytest
from django.utils import translation
from hypothesis import given

from scheduling.core.cron import CronError
from scheduling.core.describe import describe
from tests.core import brute
from tests.support import examples

GERMAN = {
    "0 9 * * *": "Um 09:00",
    "*/15 * * * *": "Alle 15 Minuten",
    "0 15 * 5 1-3": "Um 15:00, Montag bis Mittwoch, nur im Mai",
    "0 15 1 5 1": "Um 15:00, am 1. Tag des Monats, oder Montag, nur im Mai",
    "0 8 * * 1,3": "Um 08:00, nur Montag und Mittwoch",
    "0 8 * * 1#1,3#2": "Um 08:00, am ersten Montag und zweiten Mittwoch des Monats",
    "30 4 1,15,L * *": "Um 04:30, am 1., 15. und letzten Tag des Monats",
    "0 0 */3 * *": "Um 00:00, alle 3 Tage ab dem 1. des Monats",
    "@every 90m from 2026-01-05T00:00Z": "Alle 90 Minuten, gezählt ab 2026-01-05 00:00 UTC",
    "@every 1h from 2026-01-05T00:00Z": "Jede Stunde, gezählt ab 2026-01-05 00:00 UTC",
    "@every 2w on fri at 08:00": "Um 08:00, jeden zweiten Freitag, gezählt ab",
    "@every 2w on mon,fri at 08:00": "Um 08:00, jede zweite Woche am Montag und Freitag, gezählt ab",
    "@every 3d at 08:00": "Um 08:00, jeden dritten Tag, gezählt ab",
}


@pytest.mark.parametrize("expression", GERMAN)
def test_german(expression: str) -> None:
    with translation.override("de"):
        assert describe(expression).startswith(GERMAN[expression])
    assert describe(expression) != GERMAN[expression]  # the language of one reader is not kept for the next one


def test_other_languages_are_english() -> None:
    with translation.override("fr"):
        assert describe("0 15 * 5 1-3") == "At 15:00, Monday through Wednesday, only in May"


@examples(200)
@given(brute.expressions)
def test_no_word_of_a_description_is_english(expression: str) -> None:
    try:
        with translation.override("de"):
            said = describe(expression)
    except CronError:
        return
    words = set(said.replace(",", " ").lower().split())
    assert not words & {
        "at",
        "every",
        "on",
        "only",
        "past",
        "hour",
        "day",
        "through",
        "the",
        "of",
        "monday",
        "may",
        "or",
    }
