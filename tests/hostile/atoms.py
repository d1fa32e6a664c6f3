"""Hostile values from which messages and rows are made: numbers, texts, instants and deep JSON."""

from __future__ import annotations

import random
from typing import Any

NUMBERS: list[int | float] = [
    0, 1, -1, 2, 127, 128, 32767, 32768, 65536, 2**31 - 1, 2**31, -(2**31) - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63,
    -(2**63), 2**64, 10**30, 0.5, -0.0, 1e-320, 1.7e308, float("nan"), float("inf"), float("-inf"),
]  # fmt: skip

TEXTS = [
    "", " ", "x", "\t\r\n", "\x00", "a\x00b", "\x1b[31mred\x1b[0m", "\u202egnp.exe", "\ufeff", "😀" * 40, "é" * 64,
    "%s %d {} {0}", "'; DROP TABLE x; --", "<script>alert(1)</script>", "../../etc/passwd", "null", "true", "nan",
    "{}", "[]", "1e999", "x" * 300, "y" * 5000, "\ud800", "\ufffe", "\u2028\u2029", "None", "-", "0x10", "1_000",
]  # fmt: skip

INSTANTS = [
    "0000-00-00 00:00:00", "0000-00-00T00:00:00Z", "0001-01-01T00:00:00+14:00", "0001-01-01 00:00:00",
    "9999-12-31T23:59:59-14:00", "9999-12-31 23:59:59.999999", "9998-12-31T23:59:59Z", "1969-12-31T23:59:59Z",
    "1970-01-01T00:00:00+00:00", "1970-01-01T00:00:00+23:59", "2020-13-45 00:00:00", "2026-02-30T00:00:00Z",
    "2026-03-10T24:00:00Z", "2026-03-10T12:00:00", "2026-03-10", "20260310T120000Z", "2026-W11-2", "12:00", "now",
    "infinity", "-infinity", "2026-03-10T12:00:00.123456789Z", "2026-03-10T12:00:60Z", "294276-12-31 23:59:59",
    "4713-01-01 00:00:00 BC", "2026-03-29 02:30:00", "2026-03-10T12:00:00+99:99", "-2026-03-10T12:00:00Z", "",
]  # fmt: skip


def instant(pick: random.Random) -> str:
    """Return an instant that is out of range, ill-formed or at a limit; sometimes with one changed character."""
    value = pick.choice(INSTANTS)
    if value and pick.random() < 0.2:
        place = pick.randrange(len(value))
        value = value[:place] + pick.choice("0123456789-: TZé") + value[place + 1 :]
    return value


def deep(levels: int) -> list[Any]:
    """Return a list that is nested this deep. Python can only convert about 900 levels to JSON."""
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def random_text(pick: random.Random) -> str:
    """Return random text: letters, control characters, and characters of all planes, but no half characters."""
    ranges = ((32, 127), (0, 32), (128, 0x800), (0x800, 0xD800), (0x1F300, 0x1F700), (0xE000, 0xFFFF))
    return "".join(chr(pick.randrange(*pick.choice(ranges))) for _ in range(pick.choice((1, 3, 20, 80))))
