"""Text from outside, made safe to store: every database refuses something else."""

from __future__ import annotations


def clean(text: str, limit: int) -> str:
    """Without NUL (PostgreSQL refuses it) and lone surrogates (no encoding has them), at most
    `limit` characters; what is cut is said in the middle, for errors end in their cause."""
    text = text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode("utf-8")
    if len(text) <= limit:
        return text
    notice = f"\n... {len(text) - limit} characters left out ...\n"
    keep = max(limit - len(notice), 0)
    return text[: keep // 2] + notice + text[len(text) - (keep - keep // 2) :]
