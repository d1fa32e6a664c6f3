"""Fixtures of the tests of `manage.py cron`."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the width of the terminal in which the tests run, so that tables are written whole."""
    monkeypatch.delenv("COLUMNS", raising=False)
