"""File names: what a controller proposes, made safe for every disk, header and browser."""

from __future__ import annotations

import unicodedata

from django.core.exceptions import SuspiciousFileOperation
from django.utils.text import get_valid_filename

STEM_LIMIT = 100

BYTES_LIMIT = 200
"""Disks count bytes, most up to 255; a letter can have four."""

FALLBACK = "report"

_DEVICES = {"con", "prn", "aux", "nul", *(f"{name}{n}" for name in ("com", "lpt") for n in range(1, 10))}
"""Names that Windows keeps for devices, with any extension."""


def safe_filename(stem: str, extension: str) -> str:
    """`stem.extension` with nothing in it that a path, a header or a shell takes for more than a name.

    Letters and digits of any script, `-`, `_` and `.` stay; spaces become `_`; all else is dropped.

    Args:
        stem: the name proposed, without its extension; at most 100 characters of it are kept.
        extension: of the format, such as `csv`; trusted.
    """
    try:
        name = get_valid_filename(unicodedata.normalize("NFC", stem))
    except SuspiciousFileOperation:
        name = ""
    # A leading dot hides the file, a leading dash is an option to a shell's command.
    name = name.lstrip(".-")[:STEM_LIMIT].encode()[:BYTES_LIMIT].decode(errors="ignore").rstrip(".")
    if not name or name.split(".", 1)[0].lower() in _DEVICES:
        name = f"{FALLBACK}-{name}".rstrip("-")
    return f"{name}.{extension}"
