"""Fixtures of the whole suite."""

from __future__ import annotations

import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.plugin import DjangoDbBlocker

from scheduling.broker.database import DatabaseBroker
from scheduling.models import Scheduler
from tests.support import Commands


def pytest_configure() -> None:
    """Restore the handling of SIGINT and SIGQUIT.

    A shell that starts the tests in the background makes the tests ignore both signals. The processes that
    a test starts would ignore both signals too.
    """
    for number in (signal.SIGINT, signal.SIGQUIT):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> None:
    """Remove the schedule of the nightly cleanup, which a migration makes. A test then finds only rows that it made.

    Removing the schedule once per session is enough. A flush of the database after a test does not restore the rows
    that migrations make.
    """
    with django_db_blocker.unblock():
        Scheduler.objects.all().delete()


@pytest.fixture
def embedded() -> DatabaseBroker:
    """Return the database transport: messages travel through the executions table."""
    return DatabaseBroker()


@pytest.fixture
def commands(transactional_db: None, tmp_path: Path) -> Iterator[Commands]:
    """Provide the real commands, which use the test database."""
    started = Commands(tmp_path)
    yield started
    started.end()


@pytest.fixture
def free_port() -> int:
    """Return a port that is free now. Another process could still take the port before the test does."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number: int = probe.getsockname()[1]
    return number
