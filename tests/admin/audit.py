"""Turn an audit entry into one line of text, for tests."""

from __future__ import annotations

from django.contrib.admin.models import LogEntry

from scheduling.operations.audit import read


def entry_line(entry: LogEntry | None = None) -> str:
    """Return the entry as `text; field: old -> new; ...`. Without an argument, take the newest entry."""
    text, edits = read(entry or LogEntry.objects.latest("id"))
    return "; ".join(
        [*filter(None, [text]), *(f"{edit.name}: {_word(edit.old)} -> {_word(edit.new)}" for edit in edits)]
    )


def _word(value: str | None) -> str:
    return "(empty)" if value is None else value
