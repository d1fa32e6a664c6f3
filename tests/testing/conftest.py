"""The fixtures that a project gets with the package, and one for handlers that a test registers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from scheduling.handlers import registry
from scheduling.pytest_plugin import cron_drain, cron_run, cron_travel

__all__ = ["cron_drain", "cron_run", "cron_travel"]


@pytest.fixture
def own_handlers() -> Iterator[None]:
    """Forget the handlers that the test registers. Other tests count the handlers."""
    before = dict(registry._handlers)
    yield
    registry._handlers.clear()
    registry._handlers.update(before)
