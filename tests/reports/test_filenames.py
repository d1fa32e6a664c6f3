"""`safe_filename` makes a safe file name from the name that a report proposes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.execution.filenames import safe_filename


@pytest.mark.parametrize(
    ("stem", "expected"),
    [
        ("sales 2026", "sales_2026.csv"),
        ("Übersicht-März", "Übersicht-März.csv"),
        ("../../etc/passwd", "etcpasswd.csv"),
        ("C:\\windows\\x", "Cwindowsx.csv"),
        ('a"; filename="b', "a_filenameb.csv"),
        ("a\r\nSet-Cookie: x", "aSet-Cookie_x.csv"),
        ("a\x00b", "ab.csv"),
        ("invoice\u202egpj", "invoicegpj.csv"),
        ("-rf", "rf.csv"),
        (".hidden", "hidden.csv"),
        ("", "report.csv"),
        ("..", "report.csv"),
        ("///", "report.csv"),
        ("CON", "report-CON.csv"),
        ("lpt1.x", "report-lpt1.x.csv"),
        ("trailing...", "trailing.csv"),
    ],
)
def test_unsafe_characters_are_removed(stem: str, expected: str) -> None:
    assert safe_filename(stem, "csv") == expected


@given(st.text(max_size=400))
def test_any_name_becomes_short_and_safe(stem: str) -> None:
    name = safe_filename(stem, "csv")
    assert name.endswith(".csv")
    assert len(name) > len(".csv")
    assert len(name) <= 150
    assert len(name.encode()) <= 255
    assert not name.startswith((".", "-"))
    assert not set(name) & set("/\\\"';:\r\n\t\x00*?<>|%")
