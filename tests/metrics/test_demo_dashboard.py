"""`make test-dashboard`: after some minutes of the demo, each query of the dashboard for Grafana returns data.

TEST_DASHBOARD_SECONDS says how long the demo runs; 600 is the full volume. Without it, the test is skipped.
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.management.running import Running, free_ports, up
from tests.metrics.prometheus import Prometheus, prometheus
from tests.support import ROOT, wait_for

pytestmark = pytest.mark.processes

SECONDS = int(os.environ.get("TEST_DASHBOARD_SECONDS", "0"))
SCRAPES = 15
"""The seconds between two scrapes: the default of Grafana's source of data."""
VARIABLES = {"$__rate_interval": f"{4 * SCRAPES}s"}
"""What Grafana puts in place of its variables at this interval."""

WITHOUT_DATA: dict[str, str] = {}
"""Maps the titles of panels that may be empty after the demo to the reason."""


def queries() -> list[tuple[str, str]]:
    """The title of the panel and the query, for each query of the dashboard."""
    dashboard = json.loads((ROOT / "docs" / "operations" / "grafana-dashboard.json").read_text())
    found = [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", ())]
    for name, value in VARIABLES.items():
        found = [(title, query.replace(name, value)) for title, query in found]
    assert not [query for _title, query in found if "$" in query], "a variable has no value"
    return found


@pytest.mark.skipif(not SECONDS, reason="TEST_DASHBOARD_SECONDS is not set: make test-dashboard")
@pytest.mark.timeout(SECONDS + 600)
def test_each_query_of_each_panel_returns_data_after_the_demo(tmp_path: Path) -> None:
    web, of_prometheus, producer, consumer = free_ports(4)
    jobs: list[dict[str, Any]] = [
        {"job_name": "cron", "static_configs": [{"targets": [f"127.0.0.1:{web}"]}]},
        {
            "job_name": "cron-processes",
            "static_configs": [{"targets": [f"127.0.0.1:{producer}", f"127.0.0.1:{consumer}"]}],
        },
    ]
    allowed = {"CRON_METRICS_ADDRESSES": "127.0.0.1"}
    with (
        up(tmp_path / "data", f"--port={web}", f"--metrics-port={producer}", **allowed) as running,
        prometheus(tmp_path / "prometheus", of_prometheus, jobs, SCRAPES) as asked,
    ):
        running.wait_for("Ctrl-C stops everything")
        watch(running, SECONDS)
        targets = {target["labels"]["instance"]: (target["health"], target["lastError"]) for target in asked.targets()}
        assert targets == {f"127.0.0.1:{port}": ("up", "") for port in (web, producer, consumer)}
        points = {(title, query): values(asked, query) for title, query in queries()}
    for (title, query), number in points.items():
        print(f"{number:5} values  {title}: {query}")  # noqa: T201 - for the person who runs it
    empty = [(title, query) for (title, query), number in points.items() if not number]
    assert [(title, query) for title, query in empty if title not in WITHOUT_DATA] == []
    assert not WITHOUT_DATA.keys() - {title for title, _query in empty}, "these panels have data"


def watch(running: Running, seconds: int) -> None:
    """Let the demo run. Fail early if it ends."""
    end = time.monotonic() + seconds
    wait_for(lambda: time.monotonic() > end or running.process.poll() is not None, "the time is over", seconds + 60)
    assert running.process.poll() is None, running.text


def values(asked: Prometheus, query: str) -> int:
    """How many values that are numbers a query has over the time of the test."""
    found = asked.series(query, SECONDS, SCRAPES)
    return sum(not re.search("NaN|Inf", value) for series in found for _time, value in series["values"])
