"""The header Retry-After has seconds or a date. It never lets a message wait for days."""

from __future__ import annotations

import pytest

from scheduling.core.retry_after import retry_after
from tests.support import NOON


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0), (" 120 ", 120), ("86400", 3_600), ("99999999", 3_600),
        ("Tue, 10 Mar 2026 12:02:00 GMT", 120), ("Tue, 10 Mar 2026 12:02:00", 120),
        ("Tue, 10 Mar 2026 13:02:00 +0100", 120),
        ("Wed, 11 Mar 2026 12:00:00 GMT", 3_600), ("Mon, 09 Mar 2026 12:00:00 GMT", 0),
    ],
)  # fmt: skip
def test_seconds_and_dates_are_read_and_bounded(text: str, seconds: float) -> None:
    assert retry_after(text, NOON) == seconds


@pytest.mark.parametrize(
    "text",
    ["", "soon", "-5", "1.5", "1e3", "٣", "9" * 500, "Tue, 99 Foo 2026", "Tue, 10 Mar 99999 12:02:00 GMT", "\x00",
     "a," * 5_000, "10 Mar 2026 12:02:00 +9999999999"],
)  # fmt: skip
def test_other_texts_say_nothing(text: str) -> None:
    assert retry_after(text, NOON) is None
