"""Monitors for the tests of pings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.pings.healthchecks_server import Healthchecks
from tests.pings.monitor import running
from tests.pings.sentry_server import Sentry


@pytest.fixture
def healthchecks(settings: Any) -> Iterator[Healthchecks]:
    """Run a receiver of the Healthchecks protocol, which may be called although it is on this machine."""
    found = Healthchecks()
    with running(found):
        settings.CRON_INTERNAL_HOSTS = f"{getattr(settings, 'CRON_INTERNAL_HOSTS', '')},{found.host}"
        yield found


@pytest.fixture
def sentry(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sentry]:
    """Run a receiver of check-ins, and switch the monitors on."""
    found = Sentry()
    with running(found):
        settings.CRON_INTERNAL_HOSTS = f"{getattr(settings, 'CRON_INTERNAL_HOSTS', '')},{found.host}"
        settings.CRON_SENTRY_MONITORS = "true"
        monkeypatch.setenv("SENTRY_DSN", found.dsn)
        yield found
