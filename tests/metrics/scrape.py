"""Reads /metrics as Prometheus does."""

from __future__ import annotations

from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

TOKEN = "a-token-of-the-tests"

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]
"""Maps the name and the labels of each sample to its value."""


def page() -> str:
    """The text of /metrics."""
    response = Client().get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
    assert response.status_code == 200, response.content
    assert response["Cache-Control"].count("no-store") == 1
    return response.content.decode()


def samples(text: str) -> Samples:
    """The samples of an exposition, each of which must be there once."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in found, key
            found[key] = sample.value
    return found


def scrape() -> Samples:
    """The samples of /metrics."""
    return samples(page())


def value(found: Samples, name: str, **labels: str) -> float:
    """The value of one sample. The name is given without `app_schedule_`."""
    return found[f"app_schedule_{name}", tuple(sorted(labels.items()))]


def counters(found: Samples) -> Samples:
    """The samples that may never fall: counters, and the parts of histograms."""
    ends = ("_total", "_bucket", "_sum", "_count")
    return {key: number for key, number in found.items() if key[0].endswith(ends)}
