"""Makes text from outside safe to store and safe to show."""

from __future__ import annotations

import re

# Control characters (except tab and line feed), and characters that reorder or hide text. These characters can make one
# name look like another.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


def clean(text: str, limit: int) -> str:
    """The text in a form that every database can store, cut to `limit` characters.

    NUL characters are replaced, because PostgreSQL refuses them. Lone surrogates are replaced, because UTF-8 cannot
    encode them. If the text is too long, a notice replaces its middle. The end is kept, because the text of an error
    often ends with the cause.
    """
    text = text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if len(text) <= limit:
        return text
    notice = f"\n... {len(text) - limit} characters left out ...\n"
    keep = max(limit - len(notice), 0)
    return text[: keep // 2] + notice + text[len(text) - (keep - keep // 2) :]


def visible_text(text: object, limit: int | None = None) -> str:
    """The text, cut to `limit` characters, with visible codes instead of invisible and reordering characters.

    The escape character becomes `\\x1b`, and a right-to-left override becomes `\\u202e`. Operators see that the
    text contains the character, and the character cannot disturb the page.
    """
    plain = str(text).replace("\r\n", "\n")
    if limit is not None and len(plain) > limit:
        plain = plain[: max(limit - 1, 0)] + "…"
    if plain.isascii() and plain.isprintable():
        return plain  # almost every text: the alerts look at thousands in each evaluation
    plain = _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), plain)
    # Lone surrogates are replaced, because UTF-8 cannot encode them.
    return plain.encode("utf-8", "replace").decode("utf-8")


def one_line(text: object) -> str:
    """The result of `visible_text` in one line: each line feed becomes `\\n`."""
    return visible_text(text).replace("\n", "\\n")


def is_number(text: str, digits: int = 18) -> bool:
    """Whether the text is a whole number of at most `digits` ASCII digits. Every primary key column holds 18 digits."""
    return text.isascii() and text.isdecimal() and len(text) <= digits
