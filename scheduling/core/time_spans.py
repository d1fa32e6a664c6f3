"""Reads and writes lengths of time as operators type them: `30s`, `5m`, `1h 30m`, `500ms`."""

from __future__ import annotations

import re

from scheduling.core.words import gettext as _

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_SPELLINGS = {"sec": "s", "min": "m", "std": "h", "hr": "h"}
_PART = re.compile(r"\s*(\d{1,10}(?:\.\d{1,3})?)\s*([a-z]{1,3})", re.ASCII)

LONGEST_TEXT = 40


class TimeSpanError(ValueError):
    """The text is no length of time. The message is a sentence for the user."""


def parse_time_span(text: str) -> int:
    """The length in milliseconds.

    Raises:
        TimeSpanError: the text has no unit, an unknown unit, or is no length of time at all.
    """
    wanted = _("Write a number with a unit, such as 30s, 5m or 1h.")
    if len(text) > LONGEST_TEXT:
        raise TimeSpanError(wanted)
    rest, total = text.strip().lower(), 0.0
    if not rest:
        raise TimeSpanError(wanted)
    while rest:
        match = _PART.match(rest)
        if match is None:
            raise TimeSpanError(wanted)
        number, unit = match.groups()
        size = _UNITS.get(_SPELLINGS.get(unit, unit))
        if size is None:
            raise TimeSpanError(_("“{unit}” is no unit. Use ms, s, m, h or d.").format(unit=unit))
        total += float(number) * size
        rest = rest[match.end() :].strip()
    return round(total)


def spell_time_span(milliseconds: int) -> str:
    """The length in the largest units that give whole numbers: `5m`, `1h 30m`, `1s 500ms`, `0s`."""
    parts, rest = [], milliseconds
    for unit, size in reversed(_UNITS.items()):
        number, rest = divmod(rest, size)
        if number:
            parts.append(f"{number}{unit}")
    return " ".join(parts) or "0s"
