"""The options `--metrics-port` and `--metrics-host`: a producer or consumer serves its own figures to Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from django.core.management.base import CommandError, CommandParser

HIGHEST_PORT = 65_535


def add_metrics_port(parser: CommandParser) -> None:
    """Add the options."""
    parser.add_argument("--metrics-port", type=int, help="serve the figures of this process to Prometheus on this port")
    parser.add_argument("--metrics-host", default="127.0.0.1", help="the address of that port (default 127.0.0.1)")


def serving_metrics(options: dict[str, Any]) -> AbstractContextManager[None]:
    """A context manager that serves the figures of this process, if the options ask for it.

    Raises:
        CommandError: there is no such port, or prometheus-client is not installed.
    """
    port = options["metrics_port"]
    if port is None:
        return nullcontext()
    if not 1 <= port <= HIGHEST_PORT:
        raise CommandError(f"--metrics-port must be from 1 to {HIGHEST_PORT}, not {port}.")
    return _metrics_server()(port, options["metrics_host"])


def must_have_prometheus_client() -> None:
    """Check it before processes are started that need it.

    Raises:
        CommandError: prometheus-client is not installed.
    """
    _metrics_server()


def _metrics_server() -> Callable[[int, str], AbstractContextManager[None]]:
    try:
        from scheduling.metrics.own_server import metrics_server
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("prometheus_client"):
            raise
        raise CommandError("--metrics-port needs prometheus-client: pip install 'cronsite[metrics]'") from None
    return metrics_server
