"""A media folder and a registry of its own for each test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from scheduling import registry


@pytest.fixture(autouse=True)
def media(settings: Any, tmp_path: Path) -> Path:
    """Where artefacts are kept."""
    settings.MEDIA_ROOT = tmp_path / "media"
    return tmp_path / "media"


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten afterwards."""
    monkeypatch.setattr(registry, "_handlers", dict(registry._handlers))
