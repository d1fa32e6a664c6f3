"""Reads the header Retry-After of an answer (RFC 9110, 10.2.3)."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

LONGEST_WAIT = 3_600
"""The longest Retry-After that is heeded, in seconds."""


def retry_after(text: str, now: datetime) -> float | None:
    """After how many seconds the next try is wanted, from 0 to LONGEST_WAIT; None if the text does not say so.

    Args:
        text: the value of the header: a number of seconds, or a date.
    """
    text = text.strip()
    if text.isascii() and text.isdecimal():
        return float(min(int(text), LONGEST_WAIT)) if len(text) < 9 else None
    try:
        at = parsedate_to_datetime(text[:100])
        seconds = (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds()
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
    return max(0.0, min(seconds, LONGEST_WAIT))
