"""The tests check the English descriptions of cron expressions."""

from __future__ import annotations

import calendar
import locale
import warnings

import cron_descriptor
import pytest
from hypothesis import given

from scheduling.core.cron import CronError
from scheduling.core.describe import _describe, describe
from tests.core import brute
from tests.support import examples


@pytest.mark.parametrize(
    ("expression", "sentence"),
    [
        ("* * * * *", "Every minute"),
        ("*/5 * * * *", "Every 5 minutes"),
        ("@hourly", "Every hour"),
        ("@daily", "At 00:00"),
        ("@weekly", "At 00:00, only on Sunday"),
        ("@monthly", "At 00:00, on day 1 of the month"),
        ("@yearly", "At 00:00, on day 1 of the month, only in January"),
        ("05 08 * * *", "At 08:05"),
        ("30 21 * * *", "At 21:30"),
        ("0 6,14,22 * * *", "At 06:00, 14:00 and 22:00"),
        ("0 22-23,0-2 * * *", "At 00:00, 01:00, 02:00, 22:00 and 23:00"),
        ("*/15 9-17 * * mon-fri", "Every 15 minutes, between 09:00 and 17:59, Monday through Friday"),
        # Unusual spellings. The description names the values that a field matches: `5-5` matches only 5.
        ("5-5 * * * *", "At 5 minutes past the hour"),
        ("59/15 * * * *", "At 59 minutes past the hour"),
        ("0 23/6 * * *", "At 23:00"),
        ("*/40 * * * *", "At 0 and 40 minutes past the hour"),
        ("0 */9 * * *", "At 00:00, 09:00 and 18:00"),
        ("5,10/20,0-2 * * * *", "At 0 through 2, 5, 10, 30, and 50 minutes past the hour"),
        ("0-59 0-23 * * *", "Every minute"),
        ("0 9 * * 7", "At 09:00, only on Sunday"),
        ("0 9 * * 5-7", "At 09:00, Friday through Sunday"),
        ("0 9 * * 6,0", "At 09:00, only on Saturday and Sunday"),
        ("0 9 * * 1/2", "At 09:00, only on Monday, Wednesday and Friday"),
        ("0 9 * * 5,6,0,1", "At 09:00, only on Monday and Friday through Sunday"),
        ("0 9 * * 0-7", "At 09:00"),
        ("0 9 1 */4 *", "At 09:00, on day 1 of the month, only in January, May and September"),
        ("0 9 1 jan-mar *", "At 09:00, on day 1 of the month, only in January through March"),
        # Days of the month and weekdays.
        ("0 9 */2 * *", "At 09:00, every 2 days, starting on day 1 of the month"),
        ("0 9 5/10 * *", "At 09:00, on day 5, 15, and 25 of the month"),
        ("0 9 1-7 * *", "At 09:00, between day 1 and 7 of the month"),
        ("0 9 l * *", "At 09:00, on the last day of the month"),
        ("0 9 L,1,15 * *", "At 09:00, on day 1, 15, and the last day of the month"),
        ("0 9 * * 1#2", "At 09:00, on the second Monday of the month"),
        ("0 9 * * fri#1,7#5", "At 09:00, on the fifth Sunday and the first Friday of the month"),
        # Day of the month and weekday: a date must match one of the two fields. If one of them begins with a star, the
        # date must match both.
        ("0 9 13 * 5", "At 09:00, on day 13 of the month, or on Friday"),
        ("0 9 L * 1-5", "At 09:00, on the last day of the month, or on Monday through Friday"),
        ("0 9 */2 * 1", "At 09:00, every 2 days, starting on day 1 of the month, but only on Monday"),
        ("0 9 13 * */6", "At 09:00, on day 13 of the month, but only on Saturday and Sunday"),
        ("0 9 13 * 0-6", "At 09:00"),
        ("0 9 1-31 * 5", "At 09:00"),
        ("0 9 1-31 * */6", "At 09:00, only on Saturday and Sunday"),
    ],
)
def test_sentences(expression: str, sentence: str) -> None:
    assert describe(expression) == sentence


@pytest.mark.parametrize("expression", ["60 * * * *", "0 0 12 * * *", "H * * * *", ""])
def test_invalid_expressions_are_not_described(expression: str) -> None:
    # cron-descriptor alone would describe some of them, for example as "At 60 minutes past the hour".
    with pytest.raises(CronError):
        describe(expression)


def test_the_locale_of_the_process_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    # The first round has a German locale, the second round has no locale.
    german = ["Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag", "Samstag", "Sonntag"]
    monkeypatch.setattr(calendar, "day_name", german)
    for name in ("de_DE", None):
        monkeypatch.setattr(locale, "getlocale", lambda *_, name=name: (name, "UTF-8"))
        _describe.cache_clear()

        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert describe("0 15 1 5 1") == "At 15:00, on day 1 of the month, or on Monday, only in May"
            assert describe("0 15 * 5 1-3") == "At 15:00, Monday through Wednesday, only in May"


def test_the_expression_is_shown_if_the_library_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> str:
        raise cron_descriptor.FormatError("no words")

    monkeypatch.setattr(cron_descriptor.ExpressionDescriptor, "get_description", fail)
    _describe.cache_clear()
    try:
        assert describe(" @weekly ") == "0 0 * * 0"
    finally:
        _describe.cache_clear()


@examples(200)
@given(brute.expressions)
def test_every_expression_has_a_description(expression: str) -> None:
    try:
        sentence = describe(expression)
    except CronError:
        return  # `brute.expressions` also makes dates that do not exist, such as 30 February

    assert sentence != expression
    assert sentence[0].isupper()
    assert not {"?", "*", "/", "#"} & set(sentence)
    assert ", ," not in sentence
    assert "  " not in sentence
