"""The servers of a test, and the processes that work on them."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from tests.cluster.database_fleet import DatabaseFleet
from tests.cluster.servers import MariaDB, PostgreSQL
from tests.contract.server import Server, require


@pytest.fixture
def broker() -> Iterator[str]:
    """The URL of queues of their own, or of the database as transport."""
    if os.environ.get("TEST_BROKER_URL") == "database://":
        yield "database://"
        return
    require()
    server = Server()
    yield server.url()
    server.close()


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that the users of the servers can enter. pytest closes its own folders to them."""
    with tempfile.TemporaryDirectory(prefix="cron-servers-") as name:
        Path(name).chmod(0o711)
        yield Path(name)


AnyServer = TypeVar("AnyServer", PostgreSQL, MariaDB)


@contextmanager
def stopped_at_the_end(server: AnyServer) -> Iterator[AnyServer]:
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def primary(place: Path) -> Iterator[PostgreSQL]:
    """A PostgreSQL server."""
    with stopped_at_the_end(PostgreSQL(place / "primary")) as server:
        server.create()
        yield server


@pytest.fixture
def standby(place: Path, primary: PostgreSQL) -> Iterator[PostgreSQL]:
    """The standby of the primary."""
    with stopped_at_the_end(PostgreSQL(place / "standby")) as server:
        server.standby_of(primary)
        yield server


@pytest.fixture
def mariadb(place: Path) -> Iterator[MariaDB]:
    """A MariaDB server."""
    with stopped_at_the_end(MariaDB(place / "mariadb")) as server:
        server.create()
        yield server


@pytest.fixture
def start(tmp_path: Path, broker: str) -> Iterator[Callable[..., DatabaseFleet]]:
    """Start processes on a server. They end with the test."""
    fleets: list[DatabaseFleet] = []

    def begin(url: str, rows: Callable[[], list], **environment: str) -> DatabaseFleet:
        fleets.append(DatabaseFleet(tmp_path / "fleet", url, rows, BROKER_URL=broker, **environment))
        return fleets[-1]

    yield begin
    for fleet in fleets:
        fleet.close()
