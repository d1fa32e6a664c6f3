"""A demo report. It shows how to write a report."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, Field

from cronsite.demo.simulated_failure import fail_if_asked
from reports.controller import ReportController, Row
from reports.registry import report
from scheduling.handlers import Run


class OrdersParams(BaseModel):
    """How many orders the report has."""

    orders: int = Field(100, ge=1, le=1_000_000, description="How many orders are listed.")


@report("demo.orders", params=OrdersParams, title="Orders (invented)")
class Orders(ReportController):
    """Lists invented orders. With SIMULATE_FAILURE=true, it fails."""

    columns = ("order", "country", "total")

    def rows(self, params: OrdersParams, run: Run) -> Iterator[Row]:
        """Yield one row for each order."""
        fail_if_asked()
        countries = ("DE", "ES", "FR", "JP")
        for number in range(1, params.orders + 1):
            yield number, countries[number % len(countries)], f"{number * 7.5:.2f}"
