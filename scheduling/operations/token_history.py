"""What the history says about a new API token."""

from __future__ import annotations

from scheduling.core.text import visible_text
from scheduling.models import ApiToken
from scheduling.operations.params_diff import Change


def making_edits(row: ApiToken) -> list[Change]:
    """The values of a new token, in the names of the code, without its secret."""
    end = "never" if row.expires_at is None else row.expires_at.isoformat(timespec="seconds")
    return [
        Change("name", None, visible_text(row)),
        Change("prefix", None, row.prefix),
        Change("expires_at", None, end),
        Change("permissions", None, _access(row)),
    ]


def _access(row: ApiToken) -> str:
    allowed = "all of the owner" if row.permissions is None else ", ".join(row.permissions)
    return visible_text(f"read only: {allowed}" if row.read_only else allowed, 500)
