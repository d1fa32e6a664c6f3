"""Turns the file names that controllers propose into names that are safe for every disk, header and browser."""

from __future__ import annotations

import unicodedata

from django.core.exceptions import SuspiciousFileOperation
from django.utils.text import get_valid_filename

STEM_LIMIT = 100

BYTES_LIMIT = 200
"""The maximum length of a name without its extension, in bytes. Most file systems allow 255 bytes for a whole name, and
one letter can take four bytes."""

FALLBACK = "report"

_DEVICES = {"con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(1, 10))}
"""Names that Windows reserves for devices. They are reserved with any extension."""


def safe_filename(stem: str, extension: str) -> str:
    """`stem.extension` without characters that are special in a path, a header or a shell.

    Letters and digits of any script are kept, and also `-`, `_` and `.`. Spaces become `_`. Other characters are
    dropped.

    Args:
        stem: the proposed name without extension; at most its first 100 characters are kept.
        extension: the extension of the format, such as `csv`; it is not checked. Empty: the name has none.
    """
    try:
        name = get_valid_filename(unicodedata.normalize("NFC", stem))
    except SuspiciousFileOperation:
        name = ""
    # A leading dot would hide the file. A shell command would read a leading dash as an option.
    name = name.lstrip(".-")[:STEM_LIMIT].encode()[:BYTES_LIMIT].decode(errors="ignore").rstrip(".")
    if not name or name.split(".", 1)[0].lower() in _DEVICES:
        name = f"{FALLBACK}-{name}".rstrip("-")
    return f"{name}.{extension}" if extension else name
