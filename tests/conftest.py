"""Fixtures of the whole suite."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from scheduling.broker.database import DatabaseBroker
from tests.support import Commands


def pytest_configure() -> None:
    """A shell that starts tests in the background has them ignore these, and so all they start."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


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
