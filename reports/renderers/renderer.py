"""Renderer, the base class of the classes that write the rows of a report to a file, one row at a time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from io import TextIOWrapper
from types import TracebackType
from typing import IO, Any, ClassVar, Self


class Renderer:
    """Writes one file: call `write` for each row, then `finish`. The binary file stays open.

    Use a renderer in a `with` block. At its end, the renderer gives up what it holds, also if a row raised an error.

    Class attributes:
        extension: the extension of the file's name.

    Args:
        file: a binary file. It is empty and can be written and searched.
        columns: the names of the columns.
        title: what the file is about, for formats that have a place for it.
        byte_order_mark: whether a CSV file begins with a byte order mark. Other formats ignore this value.
    """

    extension: ClassVar[str]

    @classmethod
    def missing(cls) -> str:
        """A sentence for operators that says what must be installed to write this format; empty if nothing is."""
        return ""

    @classmethod
    def misfit(cls, columns: Sequence[str]) -> str:
        """A sentence that says why this format cannot hold these columns; empty if it can.

        Args:
            columns: the names of the columns.
        """
        return ""

    def __init__(
        self, file: IO[bytes], columns: Sequence[str], *, title: str = "", byte_order_mark: bool = False
    ) -> None:
        self.file, self.columns, self.title = file, tuple(columns), title

    def write(self, row: Sequence[Any]) -> None:
        """Append one row. The values are in the order of the columns."""
        raise NotImplementedError

    def finish(self) -> None:
        """Complete the file. All of its bytes are then in the binary file.

        Raises:
            OSError: the disk refused them.
        """
        raise NotImplementedError

    def release(self) -> None:
        """Give up everything except the binary file. A file that is not finished has no use afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class TextRenderer(Renderer):
    """Writes a text file. A subclass writes to `text`.

    Class attributes:
        encoding: the encoding of the file.
    """

    encoding: str = "utf-8"

    def __init__(
        self, file: IO[bytes], columns: Sequence[str], *, title: str = "", byte_order_mark: bool = False
    ) -> None:
        super().__init__(file, columns, title=title, byte_order_mark=byte_order_mark)
        # With errors="replace", a lone surrogate becomes "?", because UTF-8 cannot encode it. One broken character must
        # not make the report fail. With newline="", Python does not change the line ends that the renderer writes.
        self.text = TextIOWrapper(file, encoding=self.encoding, errors="replace", newline="")

    def finish(self) -> None:
        self.text.flush()

    def release(self) -> None:
        # `detach` leaves the binary file open. It raises OSError if the disk is full, and ValueError if it was called
        # before. If the file is complete, `finish` has already written everything.
        with suppress(OSError, ValueError):
            self.text.detach()
