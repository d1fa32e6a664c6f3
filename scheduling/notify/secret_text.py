"""Masks the parts of a chat's address in a text from outside."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable
from urllib.parse import quote, unquote, urlsplit

MASK = "••••••"

SHORTEST = 3
"""A shorter part is not masked: it is part of many words."""

_BETWEEN = re.compile(r"[\s/\\@:?&=#,;+|\"'<>{}\[\]]+")


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """The text with a mask in place of each part of the secrets.

    A server can repeat the token in its answer, as it came or with other quoting.

    Args:
        secrets: addresses, headers and other texts that have a token in them.
    """
    parts = {part for secret in secrets for part in _parts(secret) if len(part) >= SHORTEST}
    if not parts:
        return text
    # The longest part is masked first, because a shorter one can be in it.
    longest_first = sorted(parts, key=lambda part: (-len(part), part))
    return re.sub("|".join(re.escape(part) for part in longest_first), MASK, text, flags=re.IGNORECASE)


def _parts(secret: str) -> set[str]:
    """The parts between the punctuation marks, without the scheme, and with other quoting."""
    rest = secret.partition("://")[2] or secret
    found = {rest, *_BETWEEN.split(rest), *_BETWEEN.split(unquote(rest))}
    found |= {unquote(part) for part in found}
    found |= {quote(part, safe="") for part in found}
    try:
        parts = urlsplit(f"http://{rest}")
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
    except ValueError:
        user = password = ""
    if user or password:
        found |= {b64encode(f"{user}:{password}".encode(errors="replace")).decode(), user, password}
    return found
