"""Compares two states of a schedule, and decides whether a revision can be undone.

A state maps the names of columns to values as JSON has them. Each parameter has a key of its own, `params.<name>`, so
that two edits of different parameters do not touch each other. The value of a secret is replaced by `HIDDEN`; a digest
of it tells whether two secrets are equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

HIDDEN = "••••••"
"""Stands for a value that no revision holds: a secret, or a value that is too long."""

PARAMS = "params."
"""The beginning of the key of a parameter."""

OLD, NEW = "old", "new"
"""The keys of one edit. A parameter that did not exist has no value under this key."""

Edits = dict[str, dict[str, Any]]
"""Maps each changed key of a state to its old and its new value."""

Digest = Callable[[str, Any], str]
"""The digest of a value under a key of the state. It begins with the mark of the signing key, and a colon."""


@dataclass(frozen=True)
class Snapshot:
    """The state of a schedule, and the digests of the values that it hides."""

    state: Mapping[str, Any]
    digests: Mapping[str, str] = field(default_factory=dict)


def text_of(value: Any) -> str:
    """A value as JSON text. Two values are equal if their texts are: Python takes `True` and `1` for equal."""
    return json.dumps(value, sort_keys=True, default=str)


def changed_keys(before: Snapshot, after: Snapshot, digest: Digest) -> list[str]:
    """The keys of the state whose values differ, those of `before` first."""
    keys = [*before.state, *(key for key in after.state if key not in before.state)]
    return [key for key in keys if not is_same(key, before, after, digest)]


def is_same(key: str, before: Snapshot, after: Snapshot, digest: Digest) -> bool:
    """Whether the value under this key is the same in both states. Two hidden values whose digests were made with two
    signing keys count as equal, because they cannot be compared."""
    if (key in before.state) != (key in after.state):
        return False
    hidden = [one.digests.get(key) for one in (before, after)]
    if hidden == [None, None]:
        return text_of(before.state.get(key)) == text_of(after.state.get(key))
    first, second = (
        digest(key, one.state.get(key)) if known is None else known
        for one, known in zip((before, after), hidden, strict=True)
    )
    return first == second or _mark(first) != _mark(second)


def _mark(digest: str) -> str:
    return digest.partition(":")[0]


def edits_of(before: Snapshot, after: Snapshot, keys: list[str]) -> Edits:
    """The old and the new value under each of these keys."""
    return {
        key: {name: one.state[key] for name, one in ((OLD, before), (NEW, after)) if key in one.state} for key in keys
    }


def undone(edits: Edits, left_out: frozenset[str]) -> tuple[Edits, list[str]]:
    """The edits that take these edits back, and the keys whose former value no revision holds.

    Args:
        left_out: keys that an undo leaves alone.
    """
    found, unknown = Edits(), list[str]()
    for key, edit in edits.items():
        if key in left_out:
            continue
        if edit.get(OLD) == HIDDEN:
            unknown.append(key)
            continue
        found[key] = {after: edit[before] for before, after in ((NEW, OLD), (OLD, NEW)) if before in edit}
    return found, unknown
