"""The tests check how the renderers write cells, and that a written file can be read again."""

from __future__ import annotations

import csv
import io
import json
import math
import uuid
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from typing import Any

import pytest
from django.utils.translation import gettext_lazy
from hypothesis import given
from hypothesis import strategies as st

from reports.renderers import CsvRenderer, JsonLinesRenderer
from reports.renderers.csv_file import guarded
from scheduling.core.spreadsheet import FORMULA_STARTS
from tests.reports.support import rendered


class Level(IntEnum):
    """An integer that prints its name."""

    HIGH = 3

    def __str__(self) -> str:
        return self.name


INSTANT = datetime(2026, 3, 10, 13, 0, tzinfo=timezone(timedelta(hours=1)))

text = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        (None, ""),
        ("", ""),
        ("plain", "plain"),
        (0, "0"),
        (-5, "-5"),
        (-0.5, "-0.5"),
        (Decimal("-10.50"), "-10.50"),
        (Decimal("1E+3"), "1000"),
        (True, "true"),
        (False, "false"),
        ("-5", "'-5"),
        ("=1+1", "'=1+1"),
        ("+34 600 123 456", "'+34 600 123 456"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"),
        ("\n=1", "'\n=1"),
        ("\uff1d1+1", "'\uff1d1+1"),
        ("a=1", "a=1"),
        (math.inf, "inf"),
        (-math.inf, "'-inf"),
        (Decimal("-Infinity"), "'-Infinity"),
        (INSTANT, "2026-03-10T12:00:00Z"),
        (datetime(2026, 3, 10, 12, 0), "2026-03-10T12:00:00"),
        (date(2026, 3, 10), "2026-03-10"),
        (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (["a", 1], '["a", 1]'),
        ({"a": INSTANT}, '{"a": "2026-03-10T12:00:00Z"}'),
        (gettext_lazy("=lazy"), "'=lazy"),
        ("nul\x00", "nul\ufffd"),
        ({"nul\x00": 1}, '{"nul\ufffd": 1}'),
        (Level.HIGH, "3"),
        (10**300, f"1{'0' * 300}"),
        (Decimal("-1E+999999999"), "-1E+999999999"),
        (Decimal("1E-500"), "1E-500"),
    ],
)
def test_the_text_of_each_kind_of_cell(cell: Any, expected: str) -> None:
    assert guarded(cell) == expected


def test_a_csv_begins_with_a_byte_order_mark_and_a_heading() -> None:
    assert rendered(CsvRenderer, ("name", "total"), ("año", 1)) == b"\xef\xbb\xbfname,total\r\na\xc3\xb1o,1\r\n"


def test_the_byte_order_mark_is_optional() -> None:
    assert rendered(CsvRenderer, ("a",), byte_order_mark=False) == b"a\r\n"


def test_a_heading_cannot_be_a_formula() -> None:
    assert rendered(CsvRenderer, ("=a",), byte_order_mark=False) == b"'=a\r\n"


@given(st.lists(st.tuples(text, text), max_size=5))
def test_a_csv_reads_back_as_written(rows: list[tuple[str, str]]) -> None:
    content = rendered(CsvRenderer, ("a", "b"), *rows).decode("utf-8-sig")
    heading, *read = csv.reader(io.StringIO(content, newline=""))
    assert heading == ["a", "b"]
    assert read == [[guarded(cell) for cell in row] for row in rows]


@given(text)
def test_no_text_becomes_a_formula_and_no_character_is_lost(cell: str) -> None:
    assert not guarded(cell).startswith(FORMULA_STARTS)
    assert guarded(cell).removeprefix("'") == cell.removeprefix("'")


@given(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)))
def test_a_number_stays_a_number(cell: float) -> None:
    assert float(guarded(cell)) == float(cell)


def test_an_invalid_character_is_replaced() -> None:
    assert rendered(CsvRenderer, ("a",), ("x\ud800y",), byte_order_mark=False) == b"a\r\nx?y\r\n"


def test_a_number_that_no_float_holds_is_text() -> None:
    assert guarded(10**5000) == f"1{'0' * 5000}"
    content = rendered(JsonLinesRenderer, ("a", "b"), (10**5000, 2**70))
    assert json.loads(content) == {"a": f"1{'0' * 5000}", "b": 2**70}


def test_each_json_line_is_an_object() -> None:
    content = rendered(JsonLinesRenderer, ("a", "b"), ("=año\n", None), (math.nan, {"at": INSTANT}))
    assert [json.loads(line) for line in content.decode().splitlines()] == [
        {"a": "=año\n", "b": None},
        {"a": "nan", "b": {"at": "2026-03-10T12:00:00Z"}},
    ]


@given(st.lists(st.tuples(st.one_of(text, st.integers(), st.none(), st.booleans()), text), max_size=5))
def test_json_lines_read_back_as_written(rows: list[tuple[Any, str]]) -> None:
    content = rendered(JsonLinesRenderer, ("a", "b"), *rows).decode()
    assert [json.loads(line) for line in content.split("\n")[:-1]] == [{"a": a, "b": b} for a, b in rows]


def test_the_latest_possible_instant() -> None:
    assert guarded(datetime(9999, 12, 31, 23, 59, tzinfo=UTC)) == "9999-12-31T23:59:00Z"
