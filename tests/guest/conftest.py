"""Fixtures for tests in projects of others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guest.project import GuestProject


@pytest.fixture
def guest(tmp_path: Path) -> Callable[..., GuestProject]:
    """Provide a function that makes a project in an empty folder; its argument is the end of settings.py."""

    def make(settings: str = "") -> GuestProject:
        return GuestProject(tmp_path, settings)

    return make
