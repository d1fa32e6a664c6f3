"""Writes the metrics of the targets. The lines of a target are remembered while its totals stay as they are.

With hundreds of targets, prometheus_client needs longer to write the lines than the database to answer. Between two
scrapes, few of the targets have new attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from scheduling.metrics import names
from scheduling.metrics.totals import TargetTotals

Encode = Callable[[CollectorRegistry], bytes]
"""Writes the metrics of a registry in one of the formats of Prometheus."""

OF_TARGETS = (names.ATTEMPTS, names.RETRIES, names.DURATION)
"""The metrics that each target has."""

MOST_FORMATS = 2
"""The lines of so many formats are remembered. Prometheus asks for one, and a person for another one."""

Lines = Sequence[bytes]
"""What follows the heading of each of the metrics: the lines with its samples."""


class Collected(Collector):
    """Families that have been read. An error of the database is then raised by the reader, and not by the encoder."""

    def __init__(self, found: Sequence[Family]) -> None:
        self._found = found

    def collect(self) -> Iterator[Family]:
        """The families."""
        yield from self._found


class TargetLines:
    """Writes the metrics of targets, those that have changed anew."""

    def __init__(self) -> None:
        self._known: dict[str, dict[tuple[str, str], tuple[TargetTotals, Lines]]] = {}

    def text(self, totals: Sequence[TargetTotals], encode: Encode, content_type: str) -> bytes:
        """The metrics of all targets: attempts, retries and durations.

        Args:
            encode: writes the format of `content_type`.
        """
        present = set(totals)
        known = self._known.get(content_type, {}).items()
        same = {name: before for name, before in known if before[0] in present}
        changed = [one for one in totals if (one.type, one.target) not in same]
        headings, lines = _written(changed, encode)
        now = same | {(one.type, one.target): (one, own) for one, own in zip(changed, lines, strict=True)}
        others = [key for key in self._known if key != content_type][-(MOST_FORMATS - 1) :]
        self._known = {**{key: self._known[key] for key in others}, content_type: now}
        bodies = zip(*(own for _totals, own in now.values()), strict=True) if now else [()] * len(headings)
        return b"".join(part for heading, body in zip(headings, bodies, strict=True) for part in (heading, *body))


def encoded(found: Sequence[Family], encode: Encode) -> bytes:
    """The families in a format of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collected(found))
    return encode(registry)


def _written(totals: Sequence[TargetTotals], encode: Encode) -> tuple[Lines, Sequence[Lines]]:
    """The headings of the metrics, and the lines of each of these targets."""
    attempts = CounterMetricFamily(names.ATTEMPTS.name, names.ATTEMPTS.help, labels=names.ATTEMPTS.labels)
    retries = CounterMetricFamily(names.RETRIES.name, names.RETRIES.help, labels=names.RETRIES.labels)
    durations = HistogramMetricFamily(names.DURATION.name, names.DURATION.help, labels=names.DURATION.labels)
    families: Sequence[Family] = (attempts, retries, durations)
    ends = [[0] * len(families)]
    for one in totals:
        for outcome, number in one.outcomes.items():
            attempts.add_metric((one.type, one.target, outcome), float(number))
        retries.add_metric((one.type, one.target), float(one.retries))
        durations.add_metric((one.type, one.target), one.cumulative, one.milliseconds / 1_000)
        ends.append([len(family.samples) for family in families])  # one line is written for each sample
    headings, parts = _parts(encoded(families, encode))
    lines = [
        [b"".join(part[first:last]) for part, first, last in zip(parts, begin, end, strict=True)]
        for begin, end in pairwise(ends)
    ]
    return headings, lines


def _parts(text: bytes) -> tuple[Lines, Sequence[Sequence[bytes]]]:
    """The heading of each metric, which begins with its help text, and its lines with samples."""
    headings: list[bytes] = []
    parts: list[list[bytes]] = []
    for line in text.split(b"\n"):
        if line.startswith(b"# HELP "):
            headings.append(b"")
            parts.append([])
        if line.startswith(b"#") and line != b"# EOF":
            headings[-1] += line + b"\n"
        elif line and line != b"# EOF":
            parts[-1].append(line + b"\n")
    return headings, parts
