"""The workers of an invented shop. They only write to their output; the history on the screenshots is made up."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import BaseModel, Field, SecretStr

from scheduling.handlers import CircuitBreaker, Limit, RetryPolicy, Run, worker


class ImportParams(BaseModel):
    """Which orders are imported."""

    shop: str = Field("de", min_length=2, max_length=8, description="The country of the shop.")
    since_days: int = Field(1, ge=1, le=90, description="How many days to look back.")
    dry_run: bool = Field(False, description="Read the orders, and store none of them.")


@worker(
    "shop.import_orders",
    params=ImportParams,
    retry=RetryPolicy(max_retries=3, delay_ms=60_000, multiplier=2.0),
    time_limit=1800,
    title="Import orders",
    limit=Limit(at_once=2, key="shop"),
)
def import_orders(params: ImportParams, run: Run) -> None:
    """Reads new orders from the shop's payment gateway and stores them."""
    run.log.info("Orders of the shop %s", params.shop)


class InvoiceParams(BaseModel):
    """Which invoices are sent."""

    batch: int = Field(200, ge=1, le=10_000, description="How many invoices to send at once.")
    currency: Literal["EUR", "CHF", "PLN", "GBP"] = "EUR"
    until: date | None = Field(None, description="Only orders up to this day.")
    password: SecretStr = Field(SecretStr(""), description="Password of the mail account.")


@worker("shop.send_invoices", params=InvoiceParams, time_limit=900, title="Send invoices")
def send_invoices(params: InvoiceParams, run: Run) -> None:
    """Makes an invoice for each paid order and sends it to the customer."""
    run.log.info("At most %s invoices", params.batch)


class ExportParams(BaseModel):
    """Which file is written."""

    directory: str = Field("/var/exports", max_length=200, description="Where the file is written.")
    seconds: int = Field(120, ge=1, le=3600, description="How long to wait for the warehouse.")


@worker("shop.export_customers", params=ExportParams, title="Export customers")
def export_customers(params: ExportParams, run: Run) -> None:
    """Writes all customers to a compressed file for the warehouse."""
    run.log.info("Into %s", params.directory)


@worker("shop.sync_stock", title="Synchronise the stock with the warehouse", time_limit=600, breaker=CircuitBreaker())
def sync_stock(params: BaseModel, run: Run) -> None:
    """Compares the stock of the shop with that of the warehouse, and mends the differences."""
    run.log.info("Stock")


@worker("shop.rebuild_search_index", title="Rebuild the search index", fresh=True)
def rebuild_search_index(params: BaseModel, run: Run) -> None:
    """Reads all products and writes a new search index."""
    run.log.info("Index")


@worker("shop.refresh_tokens", title="Refresh API tokens")
def refresh_tokens(params: BaseModel, run: Run) -> None:
    """Asks each partner for a new token before the old one expires."""
    run.log.info("Tokens")


@worker("shop.exchange_rates")
def exchange_rates(params: BaseModel, run: Run) -> None:
    """Fetches the exchange rates of the day."""
    run.log.info("Rates")


@worker("shop.archive_logs", title="Archive log files")
def archive_logs(params: BaseModel, run: Run) -> None:
    """Moves the log files of yesterday to the archive."""
    run.log.info("Archive")


@worker("shop.listen_for_events", title="Listen for events of the warehouse", time_limit=0)
def listen_for_events(params: BaseModel, run: Run) -> None:
    """Runs for hours in the standalone consumer."""
    run.log.info("Listening")
