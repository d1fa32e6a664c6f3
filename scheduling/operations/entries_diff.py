"""What an edit has changed in the entries of a calendar, for the audit entry."""

from __future__ import annotations

from scheduling.core.text import visible_text
from scheduling.operations.audit import VALUE_MAX_CHARS
from scheduling.operations.params_diff import Change


def entries_edit(old: str, new: str) -> Change:
    """The lines that only one of the two texts has. The whole texts would be cut before the first difference."""
    before, after = dict.fromkeys(_lines(old)), dict.fromkeys(_lines(new))
    removed = [line for line in before if line not in after]
    added = [line for line in after if line not in before]
    return Change("entries", _shown(removed), _shown(added) or ("reordered" if not removed else None))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split("\n") if line.strip()]


def _shown(lines: list[str]) -> str | None:
    """The first lines that fit, and how many are left out."""
    shown = ""
    for number, line in enumerate(lines):
        more = f"; and {len(lines) - number} more"
        joined = f"{shown}; {line}" if shown else line
        if len(joined) + len(more) > VALUE_MAX_CHARS and shown:
            return visible_text(shown + more, VALUE_MAX_CHARS)
        shown = joined
    return visible_text(shown, VALUE_MAX_CHARS) or None
