"""Demo handlers. They show how to write a handler, and how runs succeed, fail and are retried.

With the environment variable SIMULATE_FAILURE=true, all of them fail.
"""

from __future__ import annotations

import time
from typing import Any, Literal

from pydantic import BaseModel, Field

from cronsite.demo.simulated_failure import fail_if_asked
from scheduling.handlers import RetryPolicy, Run, worker

# The delays are short, because users of the demo want to watch the retries.
SOON = RetryPolicy(max_retries=2, delay_ms=1_000, multiplier=2.0)

_GREETINGS = {"en": "Hello", "de": "Hallo", "es": "Hola", "fr": "Bonjour", "ja": "Konnichiwa"}


class GreetParams(BaseModel):
    """Name and language of the greeting."""

    name: str = Field("world", min_length=1, max_length=80, description="Whom to greet.")
    language: Literal["en", "de", "es", "fr", "ja"] = "en"


@worker("demo.greet", params=GreetParams, retry=SOON, time_limit=30, title="Greet (always works)")
def greet(params: GreetParams, run: Run) -> None:
    """Writes a greeting to the run's log and to standard output."""
    fail_if_asked()
    run.log.info("Greeting %s, due at %s", params.name, run.scheduled_at)
    print(f"{_GREETINGS[params.language]}, {params.name}!")  # noqa: T201 (plain print is captured too)
    run.log.success("Greeted")


class FlakyParams(BaseModel):
    """How many attempts fail."""

    failures: int = Field(2, ge=0, le=2, description="Attempts that fail before one works.")


@worker("demo.flaky", params=FlakyParams, retry=SOON, time_limit=30, title="Fetch rates (fails twice, then works)")
def fetch_rates(params: FlakyParams, run: Run) -> None:
    """Asks a service that fails at first. A retry succeeds."""
    fail_if_asked()
    run.log.info("Asking for today's exchange rates, attempt %d, retry %d", run.attempt, run.retry_count)
    if run.retry_count < params.failures:
        raise ConnectionError("rates.example.com: 503 Service Unavailable")
    run.log.success("The rates arrived")


class InvoiceError(Exception):
    """An invoice could not be created."""


@worker("demo.broken", retry=SOON, time_limit=30, title="Send invoices (always fails)")
def send_invoices(params: BaseModel, run: Run) -> None:
    """Fails in every attempt, because an order has no currency. The execution then waits in the failed inbox."""
    fail_if_asked()
    orders: list[dict[str, Any]] = [{"id": 4711, "total": 99.5, "currency": "EUR"}, {"id": 4712, "total": 12.0}]
    for done, order in enumerate(orders):
        run.progress(done, len(orders), "invoices")
        try:
            line = f"{order['total']:.2f} {order['currency']}"
        except KeyError as error:
            if run.is_last_attempt:
                run.log.warning("No retry is left; this goes to the failed inbox")
            raise InvoiceError(f"Order {order['id']} cannot be invoiced: its {error} is missing.") from error
        run.log.info("Invoice for order %s over %s", order["id"], line)


class SlowParams(BaseModel):
    """How long the run takes."""

    seconds: int = Field(60, ge=1, le=600, description="How long to run.")


@worker("demo.slow", params=SlowParams, retry=SOON, time_limit=900, title="Rebuild index (takes a minute)")
def rebuild_index(params: SlowParams, run: Run) -> None:
    """Writes a line each second.

    Use this handler to watch the output and the progress of a run, or to see what Ctrl-C does during a run.
    """
    fail_if_asked()
    for second in range(1, params.seconds + 1):
        time.sleep(1)
        run.progress(second, params.seconds, "parts")
        print(f"Part {second} of {params.seconds} is indexed")  # noqa: T201 (plain print is captured too)
    run.log.success("The index is complete")
