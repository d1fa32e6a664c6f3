"""Fixtures of the tests of findings."""

from __future__ import annotations

from tests.pings.conftest import healthchecks

__all__ = ["healthchecks"]
