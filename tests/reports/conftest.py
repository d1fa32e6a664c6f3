"""Fixtures for the reports' tests: a media folder for each test, and a registry that is restored afterwards."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scheduling.handlers import registry


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> Path:
    """Provide the media folder of this test: a temporary folder, which holds the test's artefacts."""
    settings.MEDIA_ROOT = tmp_path / "media"
    return tmp_path / "media"


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give the test a copy of the registry. At the end, restore the registry without the test's handlers."""
    monkeypatch.setattr(registry, "_handlers", dict(registry._handlers))
