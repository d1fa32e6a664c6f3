"""The reason for a pause of a schedule."""

from __future__ import annotations

REASON_LIMIT = 500


def pause_reason(text: str) -> str:
    """The reason as one line of at most REASON_LIMIT characters, because pages show it beside a schedule."""
    return " ".join(text.split())[:REASON_LIMIT]
