"""Reports that only the tests use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

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
