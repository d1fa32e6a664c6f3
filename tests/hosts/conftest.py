"""Fixtures of the hosts: the built package, and a port for the web server."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.hosts.package import Package, built


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Package:
    """The package of this checkout. The processes of pytest-xdist share it."""
    base = tmp_path_factory.getbasetemp()
    shared: Path = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    return built(shared / "package")
