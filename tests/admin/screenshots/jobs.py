"""The schedules of an invented shop, and how their last runs ended."""

from __future__ import annotations

from typing import Any, NamedTuple

GOOD, SLOW, FAILED, DISCARDED, SKIPPED, CANCELLED = "gSfdkc"
"""How a run ended. SLOW: it succeeded, and took six times as long as usual."""


class Job(NamedTuple):
    """A schedule and its history.

    Args:
        seconds: how long a run usually takes.
        ends: how the last runs ended, the newest last. All earlier runs succeeded.
        runs: how many runs there are.
    """

    description: str
    worker: str
    schedule: str
    zone: str = "Europe/Berlin"
    seconds: float = 2.0
    ends: str = ""
    runs: int = 40
    params: dict[str, Any] = {}
    pause_reason: str = ""
    columns: dict[str, Any] = {}


def _orders(country: str, zone: str, ends: str = "") -> Job:
    shop = {"shop": country.lower(), "since_days": 2}
    return Job(f"Import orders {country}", "shop.import_orders", "15 8,12,16,20 * * 1-6", zone, 123, ends, params=shop)


JOBS = (
    _orders("DE", "Europe/Berlin", GOOD * 9 + FAILED * 12),
    _orders("FR", "Europe/Paris", GOOD * 4 + FAILED * 3),
    _orders("ES", "Europe/Madrid"),
    _orders("IT", "Europe/Rome", FAILED + GOOD * 5),
    _orders("PL", "Europe/Warsaw", DISCARDED + GOOD * 2),
    _orders("UK", "Europe/London", SLOW),
    _orders("US", "America/New_York"),
    _orders("JP", "Asia/Tokyo", CANCELLED + GOOD),
    Job("Send invoices", "shop.send_invoices", "30 6 * * *", seconds=48, ends=FAILED * 4,
        params={"batch": 500, "until": None}),
    Job("Send invoices in Swiss francs", "shop.send_invoices", "45 6 * * 1", seconds=12, ends=GOOD,
        params={"currency": "CHF"}),
    Job("Customers export", "shop.export_customers", "0 3 * * *", seconds=118, ends=GOOD * 6 + FAILED,
        params={"directory": "/var/exports/customers/warehouse-hamburg"},
        columns={"spread_seconds": 1800, "missed_runs": "all", "missed_cap": 10}),
    Job("Customers export of the whole year for the accountants and the auditors", "shop.export_customers",
        "0 4 1 * *", seconds=960, runs=9),
    Job("Nightly stock comparison, shard 1", "shop.sync_stock", "0 3 * * *", seconds=240, ends=SKIPPED),
    Job("Nightly stock comparison, shard 2", "shop.sync_stock", "0 3 * * *", seconds=260, ends=SLOW),
    Job("Nightly stock comparison, shard 3", "shop.sync_stock", "0 3 * * *", seconds=230),
    *(Job(f"Stock of warehouse {place}", "shop.sync_stock", "*/20 * * * *", seconds=6, runs=60)
      for place in ("Hamburg", "Lyon", "Madrid", "Milan")),
    Job("Rebuild the search index", "shop.rebuild_search_index", "0 */6 * * *", seconds=610),
    Job("Rebuild the search index of the outlet", "shop.rebuild_search_index", "30 2 * * 0", seconds=95,
        pause_reason="The outlet moves to the new shop; back on Monday."),
    *(Job(f"Refresh tokens of {partner}", "shop.refresh_tokens", "*/30 * * * *", "UTC", 0.8, runs=60)
      for partner in ("Acme Parcel", "Northwind", "PayFast", "Contoso")),
    Job("Exchange rates", "shop.exchange_rates", "5 16 * * 1-5", seconds=1.4, ends=FAILED + GOOD * 3),
    Job("Exchange rates, second source", "shop.exchange_rates", "20 16 * * 1-5", seconds=1.9,
        pause_reason="They block us; ticket SHOP-4711."),
    Job("Archive log files", "shop.archive_logs", "10 1 * * *", "UTC", 33),
    Job("Archive log files of the test machines", "shop.archive_logs", "10 2 * * *", "UTC", 21, runs=0),
    Job("", "shop.archive_logs", "0 5 * * 6", "UTC", 3, runs=4),
    Job("Listen for events of the warehouse", "shop.listen_for_events", "* * * * *", "UTC", runs=0,
        columns={"stay_alive": True}),
)  # fmt: skip

CAUSES = {
    "shop.import_orders": (
        "shop.errors.PaymentGatewayTimeout",
        "The payment gateway did not answer within 30 seconds: https://gateway.example.org/v2/orders?shop=de",
        'File "/srv/shop/orders/imports.py", line 87, in import_orders\n    page = gateway.orders(since, cursor)\n'
        '  File "/srv/shop/gateway/client.py", line 41, in orders\n    raise PaymentGatewayTimeout(url) from error\n',
    ),
    "shop.send_invoices": (
        "KeyError",
        "'currency'",
        'File "/srv/shop/invoices/send.py", line 33, in send_invoices\n    currency = order["currency"]\n',
    ),
    "shop.export_customers": (
        "OSError",
        "[Errno 28] No space left on device: '/var/exports/customers/warehouse-hamburg/2026-11-22.csv.gz'",
        'File "/srv/shop/customers/export.py", line 120, in export_customers\n    file.write(line)\n',
    ),
    "shop.exchange_rates": (
        "requests.exceptions.ConnectionError",
        "HTTPSConnectionPool(host='rates.example.org', port=443): Max retries exceeded with url: /daily",
        'File "/srv/shop/rates.py", line 12, in exchange_rates\n    answer = requests.get(URL, timeout=10)\n',
    ),
}
"""The error of each worker that fails: its class, its message and the frames of its traceback."""
