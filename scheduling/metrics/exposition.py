"""Writes the metrics of the installation in the format of Prometheus. Only this package knows prometheus_client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TypeAlias

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from scheduling.metrics import names
from scheduling.metrics.gauges import Value, gauges
from scheduling.metrics.names import Kind, Metric
from scheduling.metrics.totals import TargetTotals, target_totals

AnyFamily: TypeAlias = CounterMetricFamily | GaugeMetricFamily


def families(values: Iterable[Value], metrics: Iterable[Metric]) -> Iterator[Family]:
    """The values of counters and gauges, each metric with its help text, in the order of `metrics`."""
    found: dict[Metric, AnyFamily] = {}
    for metric in metrics:
        if metric.kind is not Kind.HISTOGRAM:
            make = CounterMetricFamily if metric.kind is Kind.COUNTER else GaugeMetricFamily
            found[metric] = make(metric.name, metric.help, labels=metric.labels)
    for metric, labels, value in values:
        found[metric].add_metric(labels, value)
    yield from found.values()


class Installation(Collector):
    """The metrics of the whole installation at one moment.

    Args:
        now: the present time.
    """

    def __init__(self, now: datetime) -> None:
        self._now = now

    def collect(self) -> Iterator[Family]:
        """Read the tables.

        Raises:
            django.db.DatabaseError: the database cannot be reached.
        """
        totals = target_totals()
        yield from families([*_counters(totals), *gauges(self._now)], names.INSTALLATION)
        yield _durations(totals)


def _counters(totals: list[TargetTotals]) -> Iterator[Value]:
    for row in totals:
        for outcome, attempts in row.outcomes.items():
            yield names.ATTEMPTS, (row.type, row.target, outcome), float(attempts)
        yield names.RETRIES, (row.type, row.target), float(row.retries)
    yield names.NO_LISTENER, (), float(sum(row.unheard for row in totals))


def _durations(totals: list[TargetTotals]) -> HistogramMetricFamily:
    metric = names.DURATION
    family = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
    for row in totals:
        family.add_metric((row.type, row.target), row.cumulative, row.milliseconds / 1_000)
    return family


def exposition(now: datetime, accept: str = "") -> tuple[bytes, str]:
    """The metrics of the installation, and the content type.

    Args:
        accept: the header Accept of the request.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    registry = CollectorRegistry(auto_describe=False)
    encode, content_type = choose_encoder(accept)
    installation = Installation(now)
    registry.register(_Collected(list(installation.collect())))
    return encode(registry), content_type


class _Collected(Collector):
    """Families that have been read. An error of the database is then raised by the reader, and not by the encoder."""

    def __init__(self, found: list[Family]) -> None:
        self._found = found

    def collect(self) -> Iterator[Family]:
        yield from self._found
