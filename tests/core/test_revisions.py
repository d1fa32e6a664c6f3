"""Comparison of two states of a schedule, and what an undo takes back."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.core.revisions import HIDDEN, Snapshot, changed_keys, edits_of, undone


def digest(key: str, value: Any, mark: str = "a") -> str:
    return f"{mark}:{key}={value!r}"


def hidden(value: Any, mark: str = "a") -> Snapshot:
    return Snapshot({"params.token": HIDDEN}, {"params.token": digest("params.token", value, mark)})


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        (Snapshot({"a": 1}), Snapshot({"a": 1}), []),
        (Snapshot({"a": 1}), Snapshot({"a": True}), ["a"]),
        (Snapshot({"a": None}), Snapshot({}), ["a"]),
        (Snapshot({"a": {"x": 1, "y": 2}}), Snapshot({"a": {"y": 2, "x": 1}}), []),
        (Snapshot({"a": float("nan")}), Snapshot({"a": float("nan")}), []),
        (hidden("one"), hidden("one"), []),
        (hidden("one"), hidden("two"), ["params.token"]),
        (hidden("one"), Snapshot({"params.token": "one"}), []),
        (Snapshot({"params.token": "one"}), hidden("two"), ["params.token"]),
        (hidden("one"), hidden("two", mark="b"), []),  # another signing key: nothing can be told
        (hidden("one"), Snapshot({}), ["params.token"]),
    ],
)
def test_a_key_has_changed_if_its_values_differ(before: Snapshot, after: Snapshot, changed: list[str]) -> None:
    assert changed_keys(before, after, digest) == changed


def test_an_undo_takes_back_each_edit_whose_former_value_is_known() -> None:
    before = Snapshot({"a": 1, "b": 2, "gone": 3, "params.token": HIDDEN, "owner": "x"})
    after = Snapshot({"a": 9, "b": 2, "new": 4, "params.token": HIDDEN, "owner": "y"})
    edits = edits_of(before, after, ["a", "gone", "new", "params.token", "owner"])
    assert edits["gone"] == {"old": 3}
    found, unknown = undone(edits, frozenset({"owner"}))
    assert found == {"a": {"old": 9, "new": 1}, "gone": {"new": 3}, "new": {"old": 4}}
    assert unknown == ["params.token"]
