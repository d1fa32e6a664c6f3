"""The tests check the XLSX renderer. Another library, calamine, reads the workbooks."""

from __future__ import annotations

import io
import math
import re
import sys
import zipfile
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.core.checks import WARNING, run_checks
from hypothesis import given
from hypothesis import strategies as st
from python_calamine import CalamineWorkbook

from reports.controller import ReportError
from reports.delivery import deliver
from reports.registry import report
from reports.renderers import XlsxRenderer
from reports.renderers.workbook import sheet_text, sheet_value
from scheduling.handlers import RegistryError
from tests.reports.support import Numbers, rendered, run_of
from tests.support import examples

HOSTILE = (
    '=HYPERLINK("http://example.com")', "+1", "-1", "@SUM(A1)", "{=1}", "http://example.com", "mailto:a@example.com",
    "internal:Sheet1!A1", "<r><t>x</t></r>", '<r></is></c><c r="B2"><f>1+1</f></c></r>', "]]>", "&amp;", " spaces ",
    "line\nend", "año €",
)  # fmt: skip


class SmallSheets(XlsxRenderer):
    """A renderer with sheets of three rows and short texts."""

    rows_per_sheet = 3
    longest_text = 10


def sheets(content: bytes) -> list[list[list[Any]]]:
    """Return the rows of each sheet."""
    workbook = CalamineWorkbook.from_filelike(io.BytesIO(content))
    return [workbook.get_sheet_by_name(name).to_python() for name in workbook.sheet_names]


def xml(content: bytes) -> str:
    """Return the XML of the first sheet."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return file.read("xl/worksheets/sheet1.xml").decode()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (True, True),
        (0, 0),
        (2**53, 2**53),
        (-(2**53), -(2**53)),
        (2**53 + 1, "9007199254740993"),
        (-(2**53) - 1, "-9007199254740993"),
        (10**300, f"1{'0' * 300}"),
        (1.5, 1.5),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        (Decimal("-10.50"), -10.5),
        (Decimal("123456789012345"), 123456789012345.0),
        (Decimal("1234567890123456.78"), "1234567890123456.78"),
        (Decimal("0.1000000000000000000001"), "0.1000000000000000000001"),
        (Decimal("1E+999999999"), "1E+999999999"),
        (Decimal("1E-500"), "1E-500"),
        (Decimal("NaN"), "NaN"),
        (date(2026, 3, 10), "2026-03-10"),
        (datetime(2026, 3, 10, 12, tzinfo=UTC), "2026-03-10T12:00:00Z"),
        ({"a": [1, None]}, '{"a": [1, null]}'),
    ],
)
def test_numbers_stay_numbers_if_a_sheet_holds_them_exactly(value: Any, expected: Any) -> None:
    found = sheet_value(value)
    assert (type(found), found) == (type(expected), expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\x00b\x1b\x0b", "a\ufffdb\ufffd\ufffd"),
        ("\ud800 \ufffe\uffff", "\ufffd \ufffd\ufffd"),
        ("1\r\n2\rtab\t", "1\n2\ntab\t"),
        ("x" * 10, "x" * 10),
        ("x" * 11, "x" * 9 + "…"),
        ("😀" * 5, "😀" * 5),
        ("😀" * 6, "😀" * 4 + "…"),
        ("x" + "😀" * 5, "x" + "😀" * 4 + "…"),
        ("x" * 5_000_000, "x" * 9 + "…"),
    ],
)
def test_a_text_is_cut_and_its_impossible_characters_are_replaced(text: str, expected: str) -> None:
    assert sheet_text(text, 10) == expected


def test_cells_read_back_with_their_types() -> None:
    content = rendered(XlsxRenderer, ("a", "b", "c", "d", "e"), ("one", -5, 0.5, True, "=1+1"), ("", None, 2, False, 1))
    assert sheets(content) == [[["a", "b", "c", "d", "e"], ["one", -5.0, 0.5, True, "=1+1"], ["", "", 2.0, False, 1.0]]]


@pytest.mark.parametrize("text", HOSTILE)
def test_text_is_never_a_formula_a_link_or_a_part_of_the_file(text: str) -> None:
    content = rendered(XlsxRenderer, (text, "b"), (text, [text]))
    assert [row[0] for row in sheets(content)[0]] == [text, text]
    elements = set(re.findall(r"<(\w+)", xml(content)))
    assert not elements & {"f", "hyperlink", "hyperlinks"}
    assert xml(content).count("<c ") == 4


@examples(60)
@given(st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1))
def test_any_text_reads_back_as_written(text: str) -> None:
    assert sheets(rendered(XlsxRenderer, ("a",), (f".{text}.",)))[0][1] == [f".{text}."]


def test_a_further_sheet_begins_when_a_sheet_is_full() -> None:
    content = rendered(SmallSheets, ("n", "x" * 20), *((number, "y" * 20) for number in range(5)))
    heading = ["n", "x" * 9 + "…"]
    cut = "y" * 9 + "…"
    assert sheets(content) == [
        [heading, [0.0, cut], [1.0, cut]], [heading, [2.0, cut], [3.0, cut]], [heading, [4.0, cut]],
    ]  # fmt: skip


def test_a_full_sheet_without_further_rows_is_the_only_sheet() -> None:
    assert len(sheets(rendered(SmallSheets, ("n",), (1,), (2,)))) == 1


def test_the_limits_are_those_of_excel() -> None:
    limits = (XlsxRenderer.rows_per_sheet, XlsxRenderer.longest_text, XlsxRenderer.most_columns)
    assert limits == (1_048_576, 32_767, 16_384)
    content = rendered(XlsxRenderer, ("a",), ("x" * 5_000_000,))
    assert sheets(content)[0][1] == ["x" * 32_766 + "…"]


class Workbooks(Numbers):
    """A report that asks for a workbook."""

    formats = ("xlsx",)


class Wide(Workbooks):
    """A report with more columns than a sheet has."""

    columns = tuple(f"c{number}" for number in range(16_385))


def test_too_many_columns_are_refused_when_the_report_is_registered() -> None:
    with pytest.raises(RegistryError, match="at most 16384 columns, and the report has 16385"):
        report("tests.wide")(Wide)
    with pytest.raises(ReportError, match="at most 16384 columns"):
        deliver(Wide(), None, run_of())


@pytest.mark.usefixtures("own_registry")
def test_with_xlsxwriter_the_check_finds_nothing() -> None:
    report("tests.workbooks")(Workbooks)
    assert run_checks(tags=["reports"]) == []


@pytest.mark.usefixtures("own_registry")
def test_without_xlsxwriter_the_report_is_registered_and_its_run_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    report("tests.workbooks")(Workbooks)
    report("tests.numbers")(Numbers)
    (found,) = run_checks(tags=["reports"])
    assert (found.id, found.level) == ("reports.W001", WARNING)
    assert found.msg == (
        "Report 'tests.workbooks' cannot be written. The format xlsx needs XlsxWriter. Install it: "
        'pip install "cronsite[xlsx]"'
    )
    with pytest.raises(ReportError, match=r'Install it: pip install "cronsite\[xlsx\]"'):
        deliver(Workbooks(), None, run_of())
