"""A report of the invented shop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, Field

from reports.controller import ReportController
from reports.registry import report
from scheduling.handlers import Run


class RevenueParams(BaseModel):
    """The days of the report."""

    days: int = Field(1, ge=1, le=31, description="How many days the report covers.")


@report("shop.revenue", params=RevenueParams, title="Revenue by shop")
class Revenue(ReportController):
    """Revenue of each shop, by day."""

    columns = ("day", "shop", "revenue")

    def rows(self, params: Any, run: Run) -> Iterator[tuple[str, str, float]]:
        """Yield one row for each day and shop."""
        yield "2026-11-21", "de", 12_345.67
