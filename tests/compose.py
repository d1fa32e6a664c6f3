"""docker-compose.yml as the tests read it."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from typing import Any

import pytest

from tests.support import ROOT

FILE = ROOT / "docker-compose.yml"
_VALUE = re.compile(r"(?<!\$)\$\{(\w+)(?::-([^${}]*))?\}")


def load() -> dict[str, Any]:
    """The file, its anchors resolved."""
    yaml = pytest.importorskip("yaml", reason="PyYAML comes with the dev extra")
    found: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return found


def resolved(text: str) -> str:
    """Every `${NAME:-default}` as its default."""
    return _VALUE.sub(lambda found: found.group(2) or "", text)


def command(service: dict[str, Any]) -> list[str]:
    """A service's command with the defaults of its variables."""
    return [resolved(word) for word in service["command"]]


def ours(services: dict[str, Any]) -> dict[str, Any]:
    """The services that are made from our own image."""
    return {name: each for name, each in services.items() if "build" in each}


def order(services: dict[str, Any]) -> list[str]:
    """The services, each after those it waits for.

    Raises:
        graphlib.CycleError: when they wait for each other.
    """
    return list(
        TopologicalSorter({name: set(each.get("depends_on", ())) for name, each in services.items()}).static_order()
    )


def seconds(period: str) -> int:
    """`90s`, `2m` or `1m30s` as seconds."""
    parts = re.fullmatch(r"(?:(\d+)m)?(?:(\d+)s)?", resolved(period))
    assert parts is not None, period
    return int(parts.group(1) or 0) * 60 + int(parts.group(2) or 0)
