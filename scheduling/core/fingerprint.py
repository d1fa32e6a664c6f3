"""Computes the fingerprint of an error. Failures with the same fingerprint form one group on the pages."""

from __future__ import annotations

import hashlib
import re

_VARIABLE = (
    # The order matters: longer and more specific patterns come first.
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.IGNORECASE), "<uuid>"),
    (re.compile(r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?\b"), "<time>"),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"), "<email>"),
    (re.compile(r"\b(?:\d{1,3}\.){3}\d{1,3}\b"), "<ip>"),
    (re.compile(r"0x[0-9a-f]+", re.IGNORECASE), "<hex>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{12,}\b", re.IGNORECASE), "<hex>"),
    (re.compile(r"'[^']{0,200}'|\"[^\"]{0,200}\""), "<text>"),
    (re.compile(r"\d+"), "<n>"),
)

_FRAME = re.compile(r'File "([^"]+)", line \d+, in (\S+)')


def normalise(message: str) -> str:
    """The first line of the message, at most 500 characters. Placeholders such as `<uuid>` replace varying parts."""
    stripped = message.strip()
    text = stripped.splitlines()[0][:500] if stripped else ""
    for pattern, name in _VARIABLE:
        text = pattern.sub(name, text)
    return text


def own_frame(traceback: str) -> str:
    """The innermost frame outside Python and the installed packages, as `file:function`.

    If there is no such frame, the result is the innermost frame; empty if the traceback has no frames. The line number
    is left out, because every edit of the file would change it.
    """
    frames = _FRAME.findall(traceback[-20_000:])
    own = [frame for frame in frames if "site-packages" not in frame[0] and "/lib/python" not in frame[0]]
    path, function = (own or frames or [("", "")])[-1]
    return f"{path.rsplit('/', 1)[-1]}:{function}" if path else ""


def fingerprint(error_class: str, message: str, traceback: str = "") -> str:
    """Forty hexadecimal digits: a hash of the error's class, its normalised message and the result of `own_frame`."""
    parts = "\x1f".join((error_class, normalise(message), own_frame(traceback)))
    return hashlib.sha1(parts.encode(errors="replace"), usedforsecurity=False).hexdigest()
