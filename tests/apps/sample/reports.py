"""Reports that only the tests use."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from reports.controller import ReportController
from reports.registry import report
from scheduling.handlers import Run
from tests.apps.sample.workers import mark


class TokenParams(BaseModel):
    """The directory of the files that `mark` writes. If the directory has a file `down`, the report fails."""

    directory: str = ""


@report("tests.tokens", params=TokenParams)
class Tokens(ReportController):
    """Fails while the file `down` exists. The report has no retry policy, so the policy of the settings applies."""

    columns = ("user", "refreshed")

    def rows(self, params: Any, run: Run) -> Iterator[tuple[str, int]]:
        """Yield one row. Raise an error if the file `down` exists."""
        mark(params, run)
        if (Path(params.directory) / "down").exists():
            raise ConnectionError("the token service does not answer")
        yield "ann", run.attempt


@report("RefreshUserToken", params=TokenParams)
class RefreshUserToken(Tokens):
    """The report of the documents that the original contract comes from."""


class RowsParams(BaseModel):
    """The number of rows."""

    rows: int = Field(10, ge=0)


@report("tests.rows", params=RowsParams)
class Rows(ReportController):
    """Has as many rows as asked for, with a number, a text, a Decimal, a time and an empty value."""

    columns = ("number", "customer", "total", "ordered_at", "comment")
    formats = ("csv", "jsonl")

    def rows(self, params: Any, run: Run) -> Iterator[tuple[Any, ...]]:
        """Yield the rows."""
        begin = datetime(2026, 1, 1, tzinfo=UTC)
        for number in range(params.rows):
            at = begin + timedelta(seconds=number)
            yield number, f"Customer {number % 9973} & Sons", Decimal(number) / 100, at, None
