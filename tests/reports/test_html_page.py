"""The tests check the HTML renderer: one page that shows every value, runs nothing and loads nothing."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from bs4 import BeautifulSoup
from django.utils import translation
from hypothesis import given
from hypothesis import strategies as st

from reports.renderers import HtmlRenderer
from tests.reports.support import rendered


def page_of(*rows: tuple[Any, ...], columns: tuple[str, ...] = ("a",), title: str = "Totals") -> BeautifulSoup:
    """Return the parsed page with these rows."""
    return BeautifulSoup(rendered(HtmlRenderer, columns, *rows, title=title).decode(), "html.parser")


def cells(page: BeautifulSoup) -> list[list[str]]:
    """Return the texts of the table, row by row."""
    return [[found.get_text() for found in row.find_all("td")] for row in page.tbody.find_all("tr")]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (True, "true"),
        (-5, "-5"),
        (Decimal("-10.50"), "-10.50"),
        (math.nan, "nan"),
        ("=1+1", "=1+1"),
        (datetime(2026, 3, 10, 12, tzinfo=UTC), "2026-03-10T12:00:00Z"),
        (["a", {"b": 1}], '["a", {"b": 1}]'),
        ("nul\x00 escape\x1b next\x85", "nul\ufffd escape\ufffd next\ufffd"),
        ("lone \ud800", "lone ?"),
    ],
)
def test_the_text_of_each_kind_of_cell(value: Any, text: str) -> None:
    assert cells(page_of((value,))) == [[text]]


@given(st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs"))))
def test_any_text_reads_back_as_written(text: str) -> None:
    page = page_of((text,), columns=(text or "a",), title=text or "a")
    assert cells(page) == [[text]]
    assert page.thead.th.get_text() == page.h1.get_text() == page.title.get_text() == (text or "a")


def test_no_text_becomes_an_element() -> None:
    text = "</td></tr></table></title></style><script>alert(1)</script><img src=x onerror='alert(1)'>\"&"
    page = page_of((text,), ([text],), columns=(text,), title=text)
    assert cells(page)[0] == [text]
    assert page.thead.th.get_text() == page.h1.get_text() == text
    assert page.find_all(["script", "img"]) == []
    assert len(page.find_all("table")) == 1


def test_the_page_needs_no_other_file_and_allows_no_script() -> None:
    page = page_of()
    assert page.find_all(["script", "link", "img", "a"]) == []
    policy = page.find("meta", attrs={"http-equiv": "Content-Security-Policy"})
    assert policy["content"] == "default-src 'none'; style-src 'unsafe-inline'"
    assert page.meta["charset"] == "utf-8"
    assert "light dark" in page.style.get_text()
    assert "url(" not in page.style.get_text()


def test_numbers_are_marked_and_texts_are_not() -> None:
    page = page_of((1, 1.5, Decimal(2), True, "3"), columns=("a", "b", "c", "d", "e"))
    assert [found.get("class") for found in page.tbody.find_all("td")] == [["n"], ["n"], ["n"], None, None]


@pytest.mark.parametrize(("language", "direction"), [("de", "ltr"), ("he", "rtl")])
def test_the_page_has_the_language_of_the_run(language: str, direction: str) -> None:
    with translation.override(language):
        page = page_of()
    assert (page.html["lang"], page.html["dir"]) == (language, direction)


def test_a_page_without_rows_is_complete() -> None:
    assert rendered(HtmlRenderer, ("a",)).endswith(b"<tbody>\n</tbody>\n</table>\n</body>\n</html>\n")
