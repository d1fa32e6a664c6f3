"""Defines ReportController, the base class of a project's reports. An example:

```python
@report("token_refresh", params=RefreshParams)
class TokenRefresh(ReportController):
    columns = ("user", "refreshed_at")

    def rows(self, params: RefreshParams, run: Run) -> Iterator[Row]:
        for token in Token.objects.iterator(chunk_size=1000):
            yield token.user_id, token.refreshed_at
```
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

from reports.message import ReportMessage
from scheduling.core.outcome import NonRetryableError
from scheduling.handlers import Run

Row = Sequence[Any] | Mapping[str, Any]
"""One row: values in the order of `columns`, or a mapping by column name."""


class ReportError(NonRetryableError):
    """The report's code is wrong. The attempt is not retried, because a retry would fail too."""


class ReportController:
    """Base class of a report. A subclass names the report's columns and yields its rows one by one.

    Class attributes:
        columns: the unique names of the columns.
        title: the title that operators see. The decorator's `title` overrides it.
        formats: the formats of the files that a run makes, one or more of `renderers.FORMATS`.
        byte_order_mark: whether a CSV file begins with a byte order mark (`renderers.CsvRenderer` gives the reason).
    """

    columns: ClassVar[tuple[str, ...]] = ()
    title: ClassVar[str] = ""
    formats: ClassVar[tuple[str, ...]] = ("csv",)
    byte_order_mark: ClassVar[bool] = True

    def rows(self, params: Any, run: Run) -> Iterator[Row]:
        """Yield the rows. Do not collect them in a list, because each row is written as soon as it is yielded.

        Args:
            params: an instance of the report's params model.
            run: the attempt, with `run.log` and `run.progress`.

        Raises:
            Exception: any exception makes the attempt fail. The retry policy decides whether there is another attempt.
        """
        raise NotImplementedError(f"{type(self).__qualname__} needs a method rows(self, params, run).")

    def message(self, params: Any, run: Run) -> ReportMessage | None:
        """What the mail to the recipients says; None for a mail that only names the files.

        It is called after `rows`, if there are recipients.

        Raises:
            Exception: as for `rows`. Nothing is mailed then.
        """
        return None

    def filename(self, params: Any, run: Run) -> str:
        """The file's name without extension: the report's name and the due instant in UTC.

        A subclass may override this method. `filenames.safe_filename` later removes unsafe characters.
        """
        return f"{run.name or type(self).__name__}-{run.scheduled_at:%Y-%m-%d-%H%M}Z"

    def table(self, params: Any, run: Run) -> Iterator[tuple[Any, ...]]:
        """The checked rows, as tuples in the order of `columns`.

        Raises:
            ReportError: when `rows` returns None, or when a row does not fit the columns. For a row, the error's text
                contains the row's number, from 1.
        """
        rows: Iterable[Row] | None = self.rows(params, run)
        if rows is None:
            raise ReportError(f"{self._name}.rows() returned None: yield each row, or return an iterable of rows.")
        for number, row in enumerate(rows, start=1):
            yield self._checked(number, row)

    @property
    def _name(self) -> str:
        return type(self).__qualname__

    def _checked(self, number: int, row: Any) -> tuple[Any, ...]:
        if isinstance(row, Mapping):
            if row.keys() != set(self.columns):
                raise ReportError(self._wrong_keys(number, row))
            return tuple(row[column] for column in self.columns)
        if not isinstance(row, Sequence) or isinstance(row, str | bytes):
            raise ReportError(
                f"Row {number} of {self._name} is a {type(row).__name__}: "
                "yield a tuple, a list or a dictionary by column name."
            )
        if len(row) != len(self.columns):
            raise ReportError(
                f"Row {number} of {self._name} has {len(row)} values, but there are {len(self.columns)} columns: "
                f"{', '.join(self.columns)}."
            )
        return tuple(row)

    def _wrong_keys(self, number: int, row: Mapping[Any, Any]) -> str:
        missing = [column for column in self.columns if column not in row]
        extra = [repr(key) for key in row if key not in self.columns]
        lacks = f"lacks {', '.join(missing)}" if missing else ""
        has = f"has {', '.join(extra)}, which is no column" if extra else ""
        return f"Row {number} of {self._name} {' and '.join(filter(None, (lacks, has)))}."
