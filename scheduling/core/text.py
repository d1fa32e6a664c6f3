"""Text from outside: made safe to store, for every database refuses something else, and fit to be looked at."""

from __future__ import annotations

import re

# Controls other than tab and line feed, and the marks that reorder or hide what follows: a name
# written with them would read as another one.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


def clean(text: str, limit: int) -> str:
    """Without NUL (PostgreSQL refuses it) and lone surrogates (no encoding has them), at most
    `limit` characters; what is cut is said in the middle, for errors end in their cause."""
    text = text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if len(text) <= limit:
        return text
    notice = f"\n... {len(text) - limit} characters left out ...\n"
    keep = max(limit - len(notice), 0)
    return text[: keep // 2] + notice + text[len(text) - (keep - keep // 2) :]


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
