"""Fixtures of the tests of alerts."""

from __future__ import annotations

from tests.notify.conftest import chat

__all__ = ["chat"]
