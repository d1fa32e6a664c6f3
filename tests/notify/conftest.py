"""Fixtures of the tests of messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.notify.chat_server import ChatServer, chat_server


@pytest.fixture
def chat(settings: Any) -> Iterator[ChatServer]:
    """Provide a chat server that messages can reach, although it runs on this machine."""
    with chat_server() as found:
        settings.CRON_INTERNAL_HOSTS = found.host
        yield found
