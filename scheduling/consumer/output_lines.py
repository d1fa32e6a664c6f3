"""Turns one line of a run's output into the line that is stored: `<ISO time> <LEVEL> <text>`."""

from __future__ import annotations

import re
from functools import lru_cache

from scheduling.consumer.child_logging import LEVEL_MARK
from scheduling.logs import iso_from_epoch

LINE_LIMIT = 16_384
"""The maximum length of a line in bytes. A longer line is stored as several lines."""

STAMP_LENGTH = len("2026-03-10T12:00:00.000Z OUT ")
"""How many characters a line gets in front. A line with a level has the level's name among its own bytes."""

_MARKED = re.compile(f"{LEVEL_MARK}([A-Z]{{3,8}}){LEVEL_MARK}(.*)", re.DOTALL)


def stamped(line: bytes, now: float) -> tuple[str, str, str]:
    """The line with its time, its level, and its text without both. `now` is the time in epoch seconds."""
    # PostgreSQL refuses NUL in text. Other control characters are stored unchanged and escaped on the pages.
    text = line.decode("utf-8", "replace").replace("\x00", "\ufffd").rstrip("\r")
    marked = _MARKED.match(text)
    level, bare = marked.groups() if marked else ("OUT", text)
    return f"{_iso(now)} {level} {bare}\n", level, bare


def note_line(text: str, now: float) -> str:
    """A line from the supervisor."""
    return f"{iso_from_epoch(now)} NOTE {text}\n"


def parts(line: bytes) -> list[bytes]:
    """The line in pieces of at most `LINE_LIMIT` bytes."""
    return [line[start : start + LINE_LIMIT] for start in range(0, max(len(line), 1), LINE_LIMIT)]


@lru_cache(maxsize=16)
def _iso(now: float) -> str:
    """The time as text. It is remembered, because all lines of one piece of output have the same time."""
    return iso_from_epoch(now)
