"""Writes the rows of a report as CSV."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from typing import IO, Any

from reports.renderers.cells import cell, cell_text
from reports.renderers.renderer import TextRenderer
from scheduling.core.spreadsheet import guarded_text


def guarded(value: Any) -> str:
    """Return the text of a cell in a CSV file. No spreadsheet treats the text as a formula.

    Text that begins like a formula, for example the text "-5", gets a leading apostrophe. Numbers get no apostrophe,
    even if they are negative.
    """
    found = cell(value)
    text = cell_text(found)
    return guarded_text(text) if isinstance(found, str) else text


class CsvRenderer(TextRenderer):
    """Writes CSV (RFC 4180) in UTF-8 with a heading line. The file is safe to open in a spreadsheet.

    By default, the file begins with a byte order mark. Without the mark, Excel reads a CSV file in the local code page
    and shows wrong characters for all letters that are not ASCII. pandas, LibreOffice and Python's `utf-8-sig` skip the
    mark. If a program does not skip the mark, use `jsonl` or set `byte_order_mark = False` in the controller.
    """

    extension = "csv"

    def __init__(
        self, file: IO[bytes], columns: Sequence[str], *, title: str = "", byte_order_mark: bool = True
    ) -> None:
        self.encoding = "utf-8-sig" if byte_order_mark else "utf-8"
        super().__init__(file, columns, title=title)
        self._writer = csv.writer(self.text, lineterminator="\r\n")
        self.write(self.columns)

    def write(self, row: Sequence[Any]) -> None:
        """Append one line."""
        self._writer.writerow([guarded(value) for value in row])
