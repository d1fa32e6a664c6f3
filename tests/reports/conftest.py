"""Fixtures for the tests of reports: a media folder and a registry for each test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scheduling.handlers import registry


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> Path:
    """Set MEDIA_ROOT to a temporary folder of this test, and return this folder."""
    settings.MEDIA_ROOT = tmp_path / "media"
    return tmp_path / "media"


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the registry with a copy during a test, so that the handlers of the test do not stay registered."""
    monkeypatch.setattr(registry, "_handlers", dict(registry._handlers))
