"""Fixtures of the tests of the HTTP API."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.cache import cache


@pytest.fixture(autouse=True)
def nothing_counted() -> Iterator[None]:
    """Forget the requests that the cache has counted: a later test may have a token with the same key."""
    cache.clear()
    yield
    cache.clear()
