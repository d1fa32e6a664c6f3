"""Reports that only the tests use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from reports.controller import ReportController
from reports.registry import report
from scheduling.registry import Run
from tests.handlers.workers import mark


class TokenParams(BaseModel):
    """Where the outside world stands."""

    directory: str = ""


@report("tests.tokens", params=TokenParams)
class Tokens(ReportController):
    """Fails while the outside world is broken, under the policy of the settings."""

    columns = ("user", "refreshed")

    def rows(self, params: Any, run: Run) -> Iterator[tuple[str, int]]:
        """One row, unless a file says that the service is down."""
        mark(params, run)
        if (Path(params.directory) / "down").exists():
            raise ConnectionError("the token service does not answer")
        yield "ann", run.attempt
