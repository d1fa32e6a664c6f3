"""Renderers: rows -> the bytes of a file, one row at a time."""

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
"""A cell that begins with one of these is a formula to a spreadsheet; the last four are the
full-width forms of the first four."""


def plain(value: Any) -> Any:
    """A cell as text, whole number, finite float, bool or None; lists and dictionaries stay.

    Instants become ISO 8601, in UTC with a Z where they know their zone; decimals become text with
    all their digits, though `guarded` knows them for numbers; what else there is becomes `str`.
    """
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return str(value).replace("\x00", "\ufffd")  # a plain str, even of a lazy or safe one
        case datetime() if value.tzinfo is not None:
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case datetime() | date() | time():
            return value.isoformat()
        case Mapping():
            return {str(key): plain(each) for key, each in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(each) for each in value]
        case _:
            return str(value).replace("\x00", "\ufffd")


def guarded(value: Any) -> str:
    """A cell of a CSV file, which no spreadsheet takes for a formula.

    Text that begins like one gets an apostrophe in front. Numbers are told by their type and stay
    numbers, also those below zero; the text "-5" is text.
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
    """Writes one file: `write` each row, then `finish`. The binary file itself stays open."""

    extension: ClassVar[str]
    content_type: ClassVar[str]

    def __init__(self, file: IO[bytes], columns: Sequence[str], encoding: str = "utf-8") -> None:
        # A lone surrogate has no encoding: it becomes "?", for one broken character must not
        # cost the report. newline="" leaves the line ends to the format.
        self.text = TextIOWrapper(file, encoding=encoding, errors="replace", newline="")
        self.columns = tuple(columns)

    def write(self, row: Sequence[Any]) -> None:
        """Append one row: values in the order of the columns."""
        raise NotImplementedError

    def finish(self) -> None:
        """Flush, and let go of the file."""
        self.text.flush()
        self.text.detach()


class CsvRenderer(Renderer):
    """RFC 4180 in UTF-8, with a heading line, safe to open in a spreadsheet.

    It begins with a byte order mark, for Excel takes a CSV without one for the local code page and
    breaks every letter beyond ASCII; pandas, LibreOffice and Python's `utf-8-sig` skip it. A
    program that stumbles over it is better served with `jsonl`, or by a controller that sets
    `byte_order_mark = False`.
    """

    extension = "csv"
    content_type = "text/csv; charset=utf-8"

    def __init__(self, file: IO[bytes], columns: Sequence[str], byte_order_mark: bool = True) -> None:
        super().__init__(file, columns, "utf-8-sig" if byte_order_mark else "utf-8")
        self._writer = csv.writer(self.text, lineterminator="\r\n")
        self.write(self.columns)

    def write(self, row: Sequence[Any]) -> None:
        """Append one line."""
        self._writer.writerow([guarded(value) for value in row])


class JsonLinesRenderer(Renderer):
    """An object a line, in UTF-8, for programs; numbers that JSON does not have become text."""

    extension = "jsonl"
    content_type = "application/jsonl"

    def write(self, row: Sequence[Any]) -> None:
        """Append one object."""
        entry = dict(zip(self.columns, map(plain, row), strict=True))
        self.text.write(json.dumps(entry, ensure_ascii=False, allow_nan=False) + "\n")


RENDERERS: dict[str, type[Renderer]] = {"csv": CsvRenderer, "jsonl": JsonLinesRenderer}
"""The formats that a controller can name."""


def renderer_for(format_: str, file: IO[bytes], columns: Sequence[str], byte_order_mark: bool) -> Renderer:
    """A renderer of a known format, writing to `file`."""
    if format_ == "csv":
        return CsvRenderer(file, columns, byte_order_mark)
    return RENDERERS[format_](file, columns)
