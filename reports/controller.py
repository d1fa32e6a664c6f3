"""ReportController: the class that a project derives to make a report.

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

from scheduling.core.outcome import NonRetryableError
from scheduling.run import Run

Row = Sequence[Any] | Mapping[str, Any]
"""One line: values in the order of `columns`, or by column name."""


class ReportError(NonRetryableError):
    """The report's code is wrong in a way that a retry cannot mend."""


class ReportController:
    """One report: its columns, and its rows, made one at a time.

    Class attributes:
        columns: the names of the columns, unique.
        title: shown to operators; the decorator's `title` comes first.
        formats: the files that a run makes, of `csv` and `jsonl`.
        byte_order_mark: whether a CSV begins with one (`renderers.CsvRenderer` says why).
    """

    columns: ClassVar[tuple[str, ...]] = ()
    title: ClassVar[str] = ""
    formats: ClassVar[tuple[str, ...]] = ("csv",)
    byte_order_mark: ClassVar[bool] = True

    def rows(self, params: Any, run: Run) -> Iterator[Row]:
        """Yield the rows; they go to the file one by one, so never collect them.

        Args:
            params: an instance of the report's params model.
            run: the attempt, with `run.log` and `run.progress`.

        Raises:
            Exception: whatever it raises fails the attempt, and the retry policy decides.
        """
        raise NotImplementedError(f"{type(self).__qualname__} needs a method rows(self, params, run).")

    def filename(self, params: Any, run: Run) -> str:
        """The file's name without extension: the report's name and the due instant in UTC.

        Override it freely; `filenames.safe_filename` has the last word.
        """
        return f"{run.name or type(self).__name__}-{run.scheduled_at:%Y-%m-%d-%H%M}Z"

    def table(self, params: Any, run: Run) -> Iterator[tuple[Any, ...]]:
        """The rows as tuples in the order of `columns`, each checked.

        Raises:
            ReportError: naming the row, from 1, and what is wrong with it.
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
        problems = [
            *([f"lacks {', '.join(missing)}"] if missing else []),
            *([f"has {', '.join(extra)}, which is no column"] if extra else []),
        ]
        return f"Row {number} of {self._name} {' and '.join(problems)}."
