"""Functions that read docker-compose.yml for the tests."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from typing import Any

import pytest

from tests.support import ROOT

FILE = ROOT / "docker-compose.yml"
_VALUE = re.compile(r"(?<!\$)\$\{(\w+)(?::-([^${}]*))?\}")


def load() -> dict[str, Any]:
    """Return the content of docker-compose.yml."""
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with the dev extra")
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return found


def resolved(text: str) -> str:
    """Return the text with each `${NAME:-default}` replaced by its default."""
    return _VALUE.sub(lambda found: found.group(2) or "", text)


def command(service: dict[str, Any]) -> list[str]:
    """Return the words of a service's command. Each variable is replaced by its default."""
    return [resolved(word) for word in service["command"]]


def ours(services: dict[str, Any]) -> dict[str, Any]:
    """Return the services that run the image of this project."""
    return {name: service for name, service in services.items() if "build" in service}


def order(services: dict[str, Any]) -> list[str]:
    """Return the services' names in start order: each service comes after the services for which it waits.

    Raises:
        graphlib.CycleError: when two services wait for each other.
    """
    return list(
        TopologicalSorter(
            {name: set(service.get("depends_on", ())) for name, service in services.items()}
        ).static_order()
    )


def seconds(period: str) -> int:
    """Convert a period such as `90s`, `2m` or `1m30s` to seconds."""
    parts = re.fullmatch(r"(?:(\d+)m)?(?:(\d+)s)?", resolved(period))
    assert parts is not None, period
    return int(parts.group(1) or 0) * 60 + int(parts.group(2) or 0)
