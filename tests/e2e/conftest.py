"""The transports on which the end-to-end tests run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.contract.server import Server, require


@pytest.fixture(params=["database", pytest.param("rabbitmq", marks=pytest.mark.rabbitmq)])
def broker_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Provide the URL of a transport."""
    if request.param == "database":
        yield "database://"
        return
    require()
    with closing(Server()) as server:
        yield server.url()
