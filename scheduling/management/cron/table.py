"""A table for a terminal. The columns fit the width, and no cell can send a control sequence to the terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from scheduling.core.text import one_line

GAP = "  "
LEAST_WIDTH = 6
"""A column is not made narrower than this, however narrow the terminal is."""
MOST_CHARS = 500

COLOURS = {"good": "32", "bad": "31", "warn": "33", "quiet": "2", "head": "1"}
"""The codes of the tones, as terminals know them."""

TONES = {
    "succeeded": "good", "healthy": "good", "ok": "good", "failed": "bad", "failing": "bad", "fail": "bad",
    "late": "bad", "retrying": "warn", "warn": "warn", "skipped": "warn", "running": "head", "paused": "quiet",
    "cancelled": "quiet", "discarded": "quiet", "never_ran": "quiet", "ended": "quiet",
}  # fmt: skip
"""The tones of states, healths and levels. Other texts have no tone."""


@dataclass(frozen=True)
class Cell:
    """A text with a tone, see `COLOURS`."""

    text: object
    tone: str = ""


def toned(word: str) -> Cell:
    """A state, health or level in its tone."""
    return Cell(word.replace("_", " "), TONES.get(word, ""))


def paint(text: str, tone: str) -> str:
    """The text in the colour of the tone."""
    code = COLOURS.get(tone)
    return f"\x1b[{code}m{text}\x1b[0m" if code and text else text


def plain(value: object) -> str:
    """The value as one line without control characters."""
    found = value.text if isinstance(value, Cell) else value
    text = "" if found is None else str(found)
    if len(text) > MOST_CHARS:
        text = text[: MOST_CHARS - 1] + "…"
    return one_line(text).replace("\t", " ")


def width_of(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return sum(_width(sign) for sign in text)


def _width(sign: str) -> int:
    if unicodedata.combining(sign):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def cut(text: str, width: int) -> str:
    """The text, cut to so many columns of a terminal. A cut text ends with …"""
    if width_of(text) <= width:
        return text
    kept, used = "", 1
    for sign in text:
        if (used := used + _width(sign)) > width:
            break
        kept += sign
    return f"{kept}…"


def lines(columns: Sequence[str], rows: Sequence[Sequence[object]], width: int | None, colour: bool) -> list[str]:
    """The lines of a table with a head.

    Args:
        width: the columns of the terminal; None: nothing is cut.
    """
    texts = [[plain(name) for name in columns], *([plain(value) for value in row] for row in rows)]
    widths = [max(width_of(line[number]) for line in texts) for number in range(len(columns))]
    if width is not None:
        _narrow(widths, width - len(GAP) * (len(columns) - 1))
    tones = ["head"] * len(columns)
    found = [_line(texts[0], widths, tones if colour else [])]
    for row, line in zip(rows, texts[1:], strict=True):
        tones = [value.tone if isinstance(value, Cell) else "" for value in row]
        found.append(_line(line, widths, tones if colour else []))
    return found


def _narrow(widths: list[int], room: int) -> None:
    """Make the widest columns narrower until all fit."""
    while sum(widths) > room:
        widest = max(range(len(widths)), key=widths.__getitem__)
        if widths[widest] <= LEAST_WIDTH:
            return
        second = max([LEAST_WIDTH, *(width for place, width in enumerate(widths) if place != widest)])
        widths[widest] = max(widths[widest] - (sum(widths) - room), min(second, widths[widest] - 1), LEAST_WIDTH)


def _line(texts: Sequence[str], widths: Sequence[int], tones: Sequence[str]) -> str:
    parts = []
    for place, (text, width) in enumerate(zip(texts, widths, strict=True)):
        shown = cut(text, width)
        space = " " * (width - width_of(shown)) if place < len(widths) - 1 else ""
        parts.append((paint(shown, tones[place]) if tones else shown) + space)
    return GAP.join(parts).rstrip()
