"""The tests check the JSON renderer: the file is one array, whatever the rows contain."""

from __future__ import annotations

import json
import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from reports.renderers import JsonRenderer
from tests.reports.support import rendered

text = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))


@given(st.lists(st.tuples(st.one_of(text, st.integers(), st.none(), st.booleans()), text), max_size=5))
def test_rows_read_back_as_written(rows: list[tuple[Any, str]]) -> None:
    assert json.loads(rendered(JsonRenderer, ("a", "b"), *rows)) == [{"a": a, "b": b} for a, b in rows]


def test_each_row_is_one_line() -> None:
    content = rendered(JsonRenderer, ("a", "b"), ("line\nend", 1), ({"x": [math.inf]}, None))
    assert content == b'[\n{"a": "line\\nend", "b": 1},\n{"a": {"x": ["inf"]}, "b": null}\n]\n'


def test_a_report_without_rows_is_an_empty_array() -> None:
    assert json.loads(rendered(JsonRenderer, ("a",))) == []
