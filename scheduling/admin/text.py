"""Text from anywhere, made fit to be looked at. Escaping is the template's; this is about what escaping leaves."""

from __future__ import annotations

import unicodedata

from scheduling.core.text import shown

__all__ = ["first_line", "is_storable", "shown", "told"]


def first_line(text: str, limit: int = 160) -> str:
    """The first line that says something."""
    head = text[:4096].strip()
    return shown(head.splitlines()[0].rstrip(), limit) if head else ""


def told(text: object, limit: int | None = None) -> str:
    """`shown`, fit to be one value of a line of the trail: what holds values apart there cannot stand in one.

    It would let somebody write a value that reads as an edit that was never made.
    """
    return shown(text, limit).replace("; ", ";\u00a0").replace(" -> ", "\u00a0->\u00a0")


def is_storable(text: str) -> bool:
    """Whether every database takes it: NUL and lone surrogates are what some refuse."""
    return "\x00" not in text and not any(unicodedata.category(char) == "Cs" for char in text)
