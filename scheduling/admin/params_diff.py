"""Parameters before and after an edit, for a person to compare and for the trail; secrets stay hidden."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduling.admin.params_model import MASK, masked, secret_names
from scheduling.admin.text import shown, told
from scheduling.registry import Handler

LIMIT = 500
"""Characters of one value."""
TRAIL_LIMIT = 100
MOST = 50
"""Changes that are written to the trail."""
ABSENT = "-"


@dataclass(frozen=True)
class Change:
    """A parameter whose value differs; `None` is one that is not given."""

    name: str
    old: str | None
    new: str | None


def changes(
    handler: Handler | None,
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    limit: int = LIMIT,
    other: Handler | None = None,
) -> list[Change]:
    """What differs, in the order of the old ones, then the new ones.

    Args:
        other: the code that one of the two was written for, where that is not `handler`: what either calls secret is
            hidden in both.
    """
    names = [*old, *(name for name in new if name not in old)]
    before, after = (masked(other, masked(handler, dict(each))) for each in (old, new))
    return [
        Change(shown(name, 80), _said(before, name, limit), _said(after, name, limit))
        for name in names
        if (name in old) != (name in new) or _text(old[name]) != _text(new[name])
    ]


def trail(found: Sequence[Change]) -> str:
    """The changes as one line of the trail, with old and new values."""
    said = [f"{each.name}: {told(each.old or ABSENT)} -> {told(each.new or ABSENT)}" for each in found[:MOST]]
    if len(found) > MOST:
        said.append(f"and {len(found) - MOST} more")
    return "; ".join(said)


def unmask(handler: Handler | None, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """What somebody wrote who saw the secrets hidden: those left as they were shown keep their value."""
    secret = secret_names(handler)
    return {
        name: old[name] if name in secret and name in old and value == MASK else value for name, value in new.items()
    }


def _said(params: Mapping[str, Any], name: str, limit: int) -> str | None:
    return shown(_text(params[name]), limit) if name in params else None


def _text(value: Any) -> str:
    # As text: to Python, True equals 1.
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
