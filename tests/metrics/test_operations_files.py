"""The docs, dashboard, alerts and scaler name the metrics that exist. promtool accepts what it can check."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from scheduling.metrics import names
from scheduling.metrics.names import Kind
from tests.factories import TallyTotalFactory
from tests.metrics.prometheus import program
from tests.metrics.scrape import TOKEN, page

DOCS = Path(__file__).parents[2] / "docs"
FILES = sorted(path for path in (DOCS / "operations").iterdir() if path.suffix in {".json", ".yml"})
METRICS = (*names.INSTALLATION, *names.OF_PROCESS)


def series() -> set[str]:
    """The names of all series."""
    found = {metric.name for metric in METRICS}
    for metric in METRICS:
        if metric.kind is Kind.HISTOGRAM:
            found |= {metric.name + end for end in ("_bucket", "_sum", "_count")}
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_file_names_only_metrics_and_labels_that_exist(path: Path) -> None:
    text = path.read_text()
    assert set(re.findall(r"app_schedule_\w+", text)) <= series()
    labels = {label for metric in METRICS for label in metric.labels} | {"le", "instance"}
    assert set(re.findall(r"""(?:by \(|, )(\w+)(?=[,)])|(?<=\{)(\w+)(?==)""", text)) <= {
        pair for label in labels for pair in ((label, ""), ("", label))
    }
    loaded = json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    assert loaded


def test_the_dashboard_shows_each_metric() -> None:
    text = (DOCS / "operations" / "grafana-dashboard.json").read_text()
    hidden = {names.STARTED, names.TURNS, names.OWN_HELD}
    assert [metric.name for metric in METRICS if metric.name not in text and metric not in hidden] == []


def test_the_docs_describe_each_metric() -> None:
    rows = {line.split("`")[1]: line for line in (DOCS / "metrics.md").read_text().splitlines() if "| `app_" in line}
    assert rows.keys() == {metric.name for metric in METRICS}
    for metric in METRICS:
        assert f"| {metric.kind} |" in rows[metric.name]
        if metric in names.INSTALLATION:
            assert f"| {', '.join(f'`{label}`' for label in metric.labels)} |".replace("  ", " ") in rows[metric.name]


@pytest.mark.django_db
@pytest.mark.any_database
def test_prometheus_accepts_the_page_and_the_rules(settings: object) -> None:
    promtool = program("promtool")
    settings.CRON_METRICS_TOKEN = TOKEN  # type: ignore[attr-defined]
    TallyTotalFactory(target='\\ "{}')
    done = subprocess.run([promtool, "check", "metrics"], input=page(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    rules = DOCS / "operations" / "prometheus-alerts.yml"
    done = subprocess.run([promtool, "check", "rules", str(rules)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
