"""Writes the rows of a report as an XLSX workbook. This is the only module that imports XlsxWriter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from decimal import Decimal
from importlib.util import find_spec
from typing import IO, Any, ClassVar

from django.utils.translation import gettext as _

from reports.renderers.cells import cell, cell_text
from reports.renderers.renderer import Renderer
from reports.renderers.scratch_folder import scratch_folder

INSTALL = 'pip install "cronsite[xlsx]"'

LARGEST_INTEGER = 2**53
"""Spreadsheets store numbers as floats. Up to this limit, a float holds every integer exactly."""

_REFUSED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that XML refuses, and lone surrogates, which UTF-8 cannot encode."""

_OPTIONS = {
    "constant_memory": True,  # each row is written to a temporary file as soon as the next row begins
    "strings_to_formulas": False,
    "strings_to_numbers": False,
    "strings_to_urls": False,
    "use_zip64": True,  # without it, a sheet of more than 4 GB is an error
}


class XlsxRenderer(Renderer):
    """Writes a workbook with a heading in each sheet. When a sheet is full, a further sheet begins.

    Text is always text, never a formula or a link. Numbers are numbers if a spreadsheet can hold them exactly:
    integers up to 2**53, and Decimals with at most 15 digits. Other numbers are text. Dates and times are text in ISO
    8601, as in the other formats: the dates of spreadsheets have no time zone. None is an empty cell.

    XlsxWriter keeps rows and parts in named temporary files, up to about twice the size of the unpacked sheets. They
    are in a folder of their own, which is removed at the end, also after an error and after SIGTERM. If SIGKILL ends
    the process, the next workbook of this host removes the folder (`scratch_folder`).

    Class attributes:
        rows_per_sheet: the maximum number of rows in a sheet, with the heading.
        longest_text: the maximum length of a text, in UTF-16 units, as spreadsheets count. A longer text is cut, and
            ends with "…".
        most_columns: the maximum number of columns.
    """

    extension = "xlsx"
    rows_per_sheet: ClassVar[int] = 1_048_576
    longest_text: ClassVar[int] = 32_767
    most_columns: ClassVar[int] = 16_384

    @classmethod
    def missing(cls) -> str:
        if find_spec("xlsxwriter") is not None:
            return ""
        return _("The format xlsx needs XlsxWriter. Install it: %(command)s") % {"command": INSTALL}

    @classmethod
    def misfit(cls, columns: Sequence[str]) -> str:
        if len(columns) <= cls.most_columns:
            return ""
        facts = {"most": cls.most_columns, "count": len(columns)}
        return _("The format xlsx has at most %(most)d columns, and the report has %(count)d.") % facts

    def __init__(
        self, file: IO[bytes], columns: Sequence[str], *, title: str = "", byte_order_mark: bool = False
    ) -> None:
        from xlsxwriter import Workbook

        super().__init__(file, columns, title=title)
        self._held = ExitStack()
        folder = self._held.enter_context(scratch_folder())
        self._workbook = Workbook(file, {**_OPTIONS, "tmpdir": str(folder)})
        self._bold = self._workbook.add_format({"bold": True})
        self._begin_sheet()

    def write(self, row: Sequence[Any]) -> None:
        """Append one row, in a further sheet if the sheet is full."""
        if self._row >= self.rows_per_sheet:
            self._begin_sheet()
        for column, value in enumerate(row):
            match sheet_value(value):
                case None | "":
                    pass
                case bool() as found:
                    self._sheet.write_boolean(self._row, column, found)
                case str() as text:
                    self._write_text(column, text)
                case number:
                    self._sheet.write_number(self._row, column, number)
        self._row += 1

    def finish(self) -> None:
        from xlsxwriter.exceptions import XlsxWriterException

        try:
            self._workbook.close()
        except XlsxWriterException as error:  # it wraps errors of the disk
            raise OSError(f"The workbook cannot be written: {error}") from error

    def release(self) -> None:
        with suppress(OSError):
            for sheet in self._workbook.worksheets():
                sheet.row_data_fh.close()  # XlsxWriter closes the file only when the workbook is finished
        self._held.close()

    def _begin_sheet(self) -> None:
        self._sheet = self._workbook.add_worksheet()
        self._sheet.freeze_panes(1, 0)
        self._row = 0
        for column, name in enumerate(self.columns):
            self._write_text(column, name, self._bold)
        self._row = 1

    def _write_text(self, column: int, value: str, *format_: Any) -> None:
        text = sheet_text(value, self.longest_text)
        if text.startswith("<r>") and text.endswith("</r>"):
            # With constant_memory, XlsxWriter takes such a text for a finished part of the sheet and does not escape
            # it. The text could then add cells and formulas. `write_rich_string` escapes its parts.
            self._sheet.write_rich_string(self._row, column, text[0], text[1], text[2:], *format_)
        else:
            self._sheet.write_string(self._row, column, text, *format_)


def sheet_value(value: Any) -> bool | int | float | str | None:
    """Return a value as a cell of a sheet holds it. Numbers that a cell cannot hold exactly become text.

    Raises:
        Exception: see `cells.plain`.
    """
    found = cell(value)
    if isinstance(found, Decimal):
        number = float(found)
        return number if Decimal(f"{number:.15G}") == found else cell_text(found)
    is_large = isinstance(found, int) and abs(found) > LARGEST_INTEGER
    return str(found) if is_large else found


def sheet_text(text: str, longest: int) -> str:
    """Return a text as a cell of a sheet can hold it.

    Characters that XML refuses are replaced. A line end is "\\n". A text that is too long is cut, and ends with "…".

    Args:
        longest: the maximum length in UTF-16 units.
    """
    begin = text[: longest + 1].replace("\r\n", "\n").replace("\r", "\n")
    begin = _REFUSED.sub("\ufffd", begin)
    if len(text) <= longest // 2:  # a character has at most two units, so the usual text need not be counted
        return begin
    units = begin.encode("utf-16-le")
    if len(text) <= longest and len(units) <= 2 * longest:
        return begin
    return units[: 2 * (longest - 1)].decode("utf-16-le", errors="ignore") + "…"
