"""Makes text from outside safe to store and safe to show."""

from __future__ import annotations

import re

# These are control characters (except tab and line feed) and characters that reorder or hide text. Such characters can
# make one name look like another.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]"
)


def clean(text: str, limit: int) -> str:
    """The text with substitutes for NUL, which PostgreSQL refuses, and for lone surrogates, which UTF-8 cannot encode.

    A text of more than `limit` characters loses its middle, and a notice says so. The end is kept, because the text of
    an error often ends with the cause.
    """
    text = text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if len(text) <= limit:
        return text
    notice = f"\n... {len(text) - limit} characters left out ...\n"
    keep = max(limit - len(notice), 0)
    return text[: keep // 2] + notice + text[len(text) - (keep - keep // 2) :]


def visible_text(text: object, limit: int | None = None) -> str:
    """The text cut to `limit` characters, with visible codes in place of invisible and reordering characters.

    The escape character becomes `\\x1b`, and a right-to-left override becomes `\\u202e`. Operators see that the
    text contains the character, and the character cannot disturb the page.
    """
    plain = str(text).replace("\r\n", "\n")
    if limit is not None and len(plain) > limit:
        plain = plain[: max(limit - 1, 0)] + "…"
    plain = _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), plain)
    # UTF-8 cannot encode lone surrogates, so they are replaced.
    return plain.encode("utf-8", "replace").decode("utf-8")


def one_line(text: object) -> str:
    """The result of `visible_text` on one line: a line feed becomes `\\n`."""
    return visible_text(text).replace("\n", "\\n")
