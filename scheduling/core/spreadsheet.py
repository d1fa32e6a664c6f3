"""Texts in CSV files that spreadsheets do not take for formulas."""

from __future__ import annotations

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Spreadsheets treat a cell as a formula if it begins with one of these characters. The last four are the full-width
forms of the first four."""


def guarded_text(text: str) -> str:
    """The text with a leading apostrophe if it begins like a formula. Numbers need none: give them as they are."""
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
