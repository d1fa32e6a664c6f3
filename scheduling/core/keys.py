"""Turns a text from outside into a key that every database stores and tells apart from other keys."""

from __future__ import annotations

import hashlib
import re

_PLAIN = re.compile(r"[a-z0-9._:/-]{1,56}")
"""Texts that all databases tell apart. MySQL and MariaDB ignore case, accents and spaces at the end."""

KEY_LENGTH = 56
"""The greatest length of a stored key, in characters."""

_NAME = re.compile(r"[a-z0-9._:/-]{1,100}")

LONGEST_TEXT = 1_000
"""A longer key is an error of the caller, in characters."""


def is_name(text: str) -> bool:
    """Whether all databases can tell this name apart: 1 to 100 lower-case letters, digits and the signs . _ : / -"""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def stored_key(text: str) -> str:
    """The key for this text: the text itself if it is short and plain, otherwise its hash.

    Returns:
        1 to 56 characters. Equal texts have equal keys, and two texts have two keys.
    """
    if _PLAIN.fullmatch(text):
        return text
    return f"#{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:48]}"
