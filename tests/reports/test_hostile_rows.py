"""Rows with hostile values: each format writes them, and a report that fails midway stores nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from reports.delivery import deliver
from reports.renderers import FORMATS, RENDERERS
from scheduling.handlers import Run
from scheduling.models import Artefact
from tests.reports.support import Numbers, execution_of, rendered, run_of

VALUES: dict[str, Any] = {
    "NUL": "a\x00b",
    "control characters": "".join(map(chr, range(32))),
    "no characters": "\ufffe\uffff",
    "lone surrogates": "\ud800 \udfff",
    "5 MB": "x" * 5_000_000,
    "formula": '=HYPERLINK("http://example.com", "x")',
    "markup": "</td></t></is></c><r><t>x</t></r>]]><script>",
    "raw run": "<r></is></c></row></sheetData></r>",
    "NaN": math.nan,
    "infinity": -math.inf,
    "signalling NaN": Decimal("sNaN"),
    "huge integer": 10**5_000,
    "huge Decimal": Decimal("1E+999999999"),
    "nested": {"a": [{"b": (1, {2}, None)}], "\x00": math.nan},
    "bytes": b"\xff\x00",
    "object": object(),
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_writes_every_value(name: str, value: Any) -> None:
    assert rendered(RENDERERS[name], ("a", "b"), (value, [value]), title="\x00 <b>")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.django_db
def test_a_report_that_raises_midway_stores_nothing(name: str, media: Path) -> None:
    class Midway(Numbers):
        formats = (name,)

        def rows(self, params: Any, run: Run) -> Iterator[Any]:
            yield from super().rows(params, run)
            raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        deliver(Midway(), None, run_of(execution_of()))
    assert Artefact.objects.count() == 0
    assert not media.exists()


@pytest.mark.django_db
def test_all_formats_are_written_from_one_pass_over_the_rows() -> None:
    class Once(Numbers):
        formats = FORMATS
        passes = 0

        def rows(self, params: Any, run: Run) -> Iterator[Any]:
            Once.passes += 1
            yield from super().rows(params, run)

    made = deliver(Once(), None, run_of(execution_of()))
    assert [artefact.filename.rpartition(".")[2] for artefact in made] == list(FORMATS)
    assert {artefact.rows for artefact in made} == {2}
    assert Once.passes == 1
