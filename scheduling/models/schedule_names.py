"""How a schedule is named: by its description, else by its name, else by its target and its times (`str`)."""

from __future__ import annotations

DEFAULT_MARK = "@worker:"
"""Begins the name of a schedule that was made from `@worker(schedule=)`. `scheduling.api.schedule` refuses the sign
@."""


def name_for_others(name: object) -> str:
    """The name of a schedule, if it was given by code, a file, a request or a command; otherwise an empty text.

    Args:
        name: the column. Plain SQL can write any type with SQLite.
    """
    text = str(name or "")
    return "" if text.startswith(DEFAULT_MARK) else text


def shown_name(description: object, name: object) -> str:
    """The description, or else the name that was given. Empty if there is none: then `str` names target and times."""
    return str(description or "") or name_for_others(name)
