"""Text from anywhere, made fit to be looked at. Escaping is the template's; this is about what escaping leaves."""

from __future__ import annotations

import re
import unicodedata

# Controls other than tab and line feed, and the marks that reorder or hide what follows: a name
# written with them would read as another one.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


def shown(text: object, limit: int | None = None) -> str:
    """The text with invisible and reordering characters made visible, and cut at `limit` characters.

    A terminal's escape becomes `\\x1b`, a right-to-left override `\\u202e`: an operator sees what is
    there, and a page looks as it was meant to.
    """
    plain = str(text).replace("\r\n", "\n")
    if limit is not None and len(plain) > limit:
        plain = plain[: max(limit - 1, 0)] + "…"
    plain = _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), plain)
    # Lone surrogates cannot be sent as UTF-8 at all.
    return plain.encode("utf-8", "replace").decode("utf-8")


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
