"""Starts a Prometheus of its own, with its own port and folder, and asks it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import wait_for

Series = dict[str, Any]
"""One series of an answer: `metric` (its labels) and `values` (pairs of a time and a text)."""


def program(name: str) -> str:
    """Return the path of `prometheus` or `promtool`. Without it, skip the test; fail it in CI."""
    path = shutil.which(name)
    if path is None:
        if os.environ.get("CI"):
            pytest.fail(f"{name} is not installed")
        pytest.skip(f"{name} is not installed (Debian's package prometheus)")
    return path


class Prometheus:
    """A running Prometheus.

    Args:
        port: where it listens.
    """

    def __init__(self, port: int) -> None:
        self._address = f"http://127.0.0.1:{port}/api/v1"

    def targets(self) -> list[dict[str, Any]]:
        """What it scrapes. `health` is `up` after a scrape without an error, and `lastError` is the error."""
        found: list[dict[str, Any]] = self._ask("targets", {})["activeTargets"]
        return found

    def value(self, query: str) -> float | None:
        """The present value of a query with one series; None if the query has no data."""
        found = self._ask("query", {"query": query})["result"]
        assert len(found) <= 1, found
        return float(found[0]["value"][1]) if found else None

    def series(self, query: str, seconds: float, step: float) -> list[Series]:
        """The series of a query over the last seconds, as a panel of Grafana asks for them."""
        now = time.time()
        asked = {"query": query, "start": now - seconds, "end": now, "step": step}
        found: list[Series] = self._ask("query_range", asked)["result"]
        return found

    def _ask(self, what: str, asked: dict[str, Any]) -> dict[str, Any]:
        address = f"{self._address}/{what}?{urllib.parse.urlencode(asked)}"
        with urllib.request.urlopen(address, timeout=30) as answer:  # noqa: S310 - http only
            found: dict[str, Any] = json.load(answer)["data"]
        return found


def is_ready(port: int) -> bool:
    """Return whether a Prometheus on this port has read its own files. Before that, it answers 503."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=30):
            return True
    except OSError:
        return False


@contextmanager
def prometheus(folder: Path, port: int, jobs: Sequence[dict[str, Any]], seconds: int = 1) -> Iterator[Prometheus]:
    """Start it, and end it with the context.

    Args:
        jobs: entries of `scrape_configs`.
        seconds: between two scrapes.
    """
    path = program("prometheus")
    config = {
        "global": {"scrape_interval": f"{seconds}s", "scrape_timeout": f"{min(seconds, 10)}s"},
        "scrape_configs": list(jobs),
    }
    folder.mkdir()
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    arguments = [
        f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen([path, *arguments], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_for(lambda: is_ready(port) or process.poll() is not None, "Prometheus is ready")
        assert process.poll() is None, (folder / "log").read_text()
        yield Prometheus(port)
    finally:
        process.terminate()
        process.wait(60)
