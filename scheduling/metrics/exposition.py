"""Writes the metrics of the installation in the format of Prometheus. Only this package knows prometheus_client."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TypeAlias

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric as Family

from scheduling.metrics import names
from scheduling.metrics.gauges import Value, gauges
from scheduling.metrics.names import Kind, Metric
from scheduling.metrics.target_lines import OF_TARGETS, TargetLines, encoded
from scheduling.metrics.totals import target_totals

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


_target_lines = TargetLines()

_OTHERS = [metric for metric in names.INSTALLATION if metric not in OF_TARGETS]


def exposition(now: datetime, accept: str = "") -> tuple[bytes, str]:
    """The metrics of the installation, and the content type.

    Args:
        accept: the header Accept of the request.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    encode, content_type = choose_encoder(accept)
    totals = target_totals()
    unheard = (names.NO_LISTENER, (), float(sum(one.unheard for one in totals)))
    others = list(families([unheard, *gauges(now)], _OTHERS))
    return _target_lines.text(totals, encode, content_type) + encoded(others, encode), content_type
