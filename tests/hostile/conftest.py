"""Fixtures of the hostile tests: rows, addresses and users of the admin, and a client of RabbitMQ."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from scheduling.management.groups import OPERATOR
from tests.admin.addresses import Address, every_address
from tests.admin.conftest import logged_in, member
from tests.admin.rows import Rows, one_of_each
from tests.contract.server import Server, require
from tests.factories import UserFactory


@pytest.fixture
def rows(db: None, settings: Any, tmp_path: Path) -> Rows:
    """Rows of each model that has pages."""
    settings.MEDIA_ROOT = tmp_path
    return one_of_each()


@pytest.fixture
def addresses(rows: Rows) -> list[Address]:
    """Every address of the site, except the address that logs out."""
    return [address for address in every_address(rows) if address.name != "logout"]


@pytest.fixture
def keys(rows: Rows) -> list[str]:
    """The primary keys of the rows of all models."""
    return [str(row.pk) for found in rows.values() for row in found]


@pytest.fixture
def clients(db: None) -> list[Client]:
    """Clients of a superuser and of an operator."""
    return [logged_in(UserFactory(username="root", superuser=True)), member(OPERATOR)]


@pytest.fixture
def server() -> Iterator[Server]:
    """Provide a client of the RabbitMQ server that TEST_BROKER_URL names. Skip the test if no server answers."""
    require()
    server = Server()
    yield server
    server.close()
