"""Functions that check and shorten text from users and other sources."""

from __future__ import annotations

from scheduling.core.text import is_number as is_number
from scheduling.core.text import visible_text

SEARCH_MAX_CHARS = 200
"""Longer search terms are cut, because SQLite refuses very long patterns (more than 50,000 bytes)."""


def searched(term: str) -> str:
    """The search term without spaces at its ends, cut at SEARCH_MAX_CHARS characters."""
    return term.strip()[:SEARCH_MAX_CHARS].rstrip()


def first_line(text: str, limit: int = 160) -> str:
    """The first line that is not empty, cut at `limit` characters and made safe to show."""
    head = text[:4096].strip()
    return visible_text(head.splitlines()[0].rstrip(), limit) if head else ""
