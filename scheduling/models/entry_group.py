"""Entries of Django's admin log about rows with a group: the entry keeps the group, because it outlives the row."""

from __future__ import annotations

from typing import Any


def group_of(row: Any) -> int | None:
    """The group of a schedule or an execution; None for a row without one, and for a row of another table."""
    # The attribute may be deferred, and other apps may have a field of this name. A target has no group.
    names = {field.attname for field in row._meta.concrete_fields if field.name == "group"}
    found = getattr(row, "group_id", None) if "group_id" in names else None
    return found if type(found) is int else None


def entry_of_group(text: str, group: int) -> list[dict[str, Any]]:
    """The `change_message` of an entry that has a text and no edits."""
    return [{"changed": {"fields": [text], "text": text, "edits": [], "group": group}}]
