"""Numbers are written as the reader's language writes them; times are the same in each language."""

from __future__ import annotations

import pytest
from django.utils import translation

from scheduling.core.words import decimal, grouped
from scheduling.models.counts import Count
from scheduling.models.time_words import format_duration


@pytest.mark.parametrize(
    ("language", "whole", "part", "duration", "count"),
    [
        ("en", "1,234,567", "0.5", "1.25 s", "10,000+"),
        ("de", "1.234.567", "0,5", "1,25 s", "10.000+"),
        ("fr", "1,234,567", "0.5", "1.25 s", "10,000+"),  # no catalogue: the sentence around it is English
    ],
)
def test_numbers_follow_the_language(language: str, whole: str, part: str, duration: str, count: str) -> None:
    with translation.override(language):
        assert (grouped(1_234_567), decimal("0.5")) == (whole, part)
        assert (format_duration(1.25), str(Count(10_000, capped=True))) == (duration, count)
