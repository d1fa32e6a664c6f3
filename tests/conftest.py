"""Fixtures of the whole suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduling.broker.database import DatabaseBroker
from tests.support import Commands


@pytest.fixture
def embedded() -> DatabaseBroker:
    """The embedded transport."""
    return DatabaseBroker()


@pytest.fixture
def commands(transactional_db: None, tmp_path: Path) -> Iterator[Commands]:
    """The real commands on the test database."""
    started = Commands(tmp_path)
    yield started
    started.end()
