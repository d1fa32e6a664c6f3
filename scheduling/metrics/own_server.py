"""Serves the figures of this process to Prometheus, from a thread. It asks no database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from scheduling.logs import get_logger
from scheduling.metrics import names
from scheduling.metrics.exposition import families
from scheduling.processes.figures import Figures, figures

log = get_logger(__name__)


class OwnFigures(Collector):
    """The metrics of one process."""

    def __init__(self, own: Figures) -> None:
        self._own = own

    def collect(self) -> Iterator[Family]:
        """Read the figures from memory."""
        own = self._own
        values = (
            (names.TURNS, own.turns), (names.CLAIMS, own.claims), (names.PUBLISHES, own.publishes),
            (names.CONFIRMS, own.confirms), (names.STARTS, own.starts), (names.STARTED, own.started_at),
            (names.OWN_SLOTS, own.slots), (names.OWN_BUSY, own.busy), (names.OWN_HELD, own.held),
        )  # fmt: skip
        return families([(metric, (), float(value)) for metric, value in values], names.OF_PROCESS)


@contextmanager
def metrics_server(port: int, host: str) -> Iterator[None]:
    """Serve the figures of this process while the context is open.

    If the port is taken, the process works without the server. A request can neither stop the process nor keep it
    alive, because the threads of the server end with the process.
    """
    registry = CollectorRegistry(auto_describe=False)
    registry.register(OwnFigures(figures))
    try:
        server, _thread = start_http_server(port, host, registry)
    except (OSError, OverflowError) as error:
        log.error("No metrics of this process, because %s port %s cannot be opened: %s", host, port, error)
        yield
        return
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
