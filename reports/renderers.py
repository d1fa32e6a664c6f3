"""Writes the rows of a report to a file, as CSV or as JSON Lines, one row at a time."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from io import TextIOWrapper
from typing import IO, Any, ClassVar

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Spreadsheets treat a cell as a formula if it begins with one of these characters. The last four are the full-width
forms of the first four."""


def plain(value: Any) -> Any:
    """Return a cell's value as text, int, finite float, bool or None, or as a list or dict of such values.

    Datetimes with a time zone become text in ISO 8601, in UTC and with a Z. Other dates and times become text in ISO
    8601. Other values become `str(value)`. This includes Decimals, but `guarded` writes a finite Decimal as a number.
    """
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return str(value).replace("\x00", "\ufffd")  # subclasses, such as Django's SafeString, become plain str
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case datetime() | date() | time():
            return value.isoformat()
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in value]
        case _:
            return str(value).replace("\x00", "\ufffd")


def guarded(value: Any) -> str:
    """Return the text of a cell in a CSV file. No spreadsheet treats the text as a formula.

    Text that begins like a formula, for example the text "-5", gets a leading apostrophe. Numbers get no apostrophe,
    even if they are negative.
    """
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}"
    cell = plain(value)
    match cell:
        case None:
            return ""
        case bool():
            return "true" if cell else "false"
        case int() | float():
            return repr(cell)
        case dict() | list():
            cell = json.dumps(cell, ensure_ascii=False)
    return f"'{cell}" if cell.startswith(FORMULA_STARTS) else cell


class Renderer:
    """Writes one file: call `write` for each row, then `finish`. The binary file stays open."""

    extension: ClassVar[str]

    def __init__(self, file: IO[bytes], columns: Sequence[str], encoding: str = "utf-8") -> None:
        # With errors="replace", a lone surrogate becomes "?", because UTF-8 cannot encode it. One broken character must
        # not make the report fail. With newline="", Python does not change the line ends that the renderer writes.
        self.text = TextIOWrapper(file, encoding=encoding, errors="replace", newline="")
        self.columns = tuple(columns)

    def write(self, row: Sequence[Any]) -> None:
        """Append one row. The values are in the order of the columns."""
        raise NotImplementedError

    def finish(self) -> None:
        """Write all buffered text to the binary file, and detach the file."""
        self.text.flush()
        self.text.detach()


class CsvRenderer(Renderer):
    """Writes CSV (RFC 4180) in UTF-8 with a heading line. The file is safe to open in a spreadsheet.

    By default, the file begins with a byte order mark. Without the mark, Excel reads a CSV file in the local code page
    and shows wrong characters for all letters that are not ASCII. pandas, LibreOffice and Python's `utf-8-sig` skip the
    mark. If a program does not skip the mark, use `jsonl` or set `byte_order_mark = False` in the controller.
    """

    extension = "csv"

    def __init__(self, file: IO[bytes], columns: Sequence[str], byte_order_mark: bool = True) -> None:
        super().__init__(file, columns, "utf-8-sig" if byte_order_mark else "utf-8")
        self._writer = csv.writer(self.text, lineterminator="\r\n")
        self.write(self.columns)

    def write(self, row: Sequence[Any]) -> None:
        """Append one line."""
        self._writer.writerow([guarded(value) for value in row])


class JsonLinesRenderer(Renderer):
    """Writes one JSON object in each line, in UTF-8. Numbers that JSON cannot represent become text."""

    extension = "jsonl"

    def write(self, row: Sequence[Any]) -> None:
        """Append one object."""
        entry = dict(zip(self.columns, map(plain, row), strict=True))
        self.text.write(json.dumps(entry, ensure_ascii=False, allow_nan=False) + "\n")


RENDERERS: dict[str, type[Renderer]] = {"csv": CsvRenderer, "jsonl": JsonLinesRenderer}
"""The renderer of each format. The keys are the format names that a controller can use."""


def renderer_for(format_: str, file: IO[bytes], columns: Sequence[str], byte_order_mark: bool) -> Renderer:
    """Return a renderer that writes the format `format_` to `file`. The format must be a key of RENDERERS."""
    if format_ == "csv":
        return CsvRenderer(file, columns, byte_order_mark)
    return RENDERERS[format_](file, columns)
