"""Keeps the addresses of requests out of the logs. The URL of a chat, a webhook or a ping is a secret."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

CHATTY = (
    "apprise", "urllib3.connection", "urllib3.connectionpool", "urllib3.poolmanager", "urllib3.response",
    "urllib3.util.retry", "requests_hardened.ip_filter",
)  # fmt: skip
"""Loggers that write the URL of a request or the text of an answer."""

_is_quiet: ContextVar[bool] = ContextVar("is_quiet", default=False)


@contextmanager
def quiet() -> Iterator[None]:
    """Let these loggers write nothing. Only what the block itself calls in its thread is quiet."""
    token = _is_quiet.set(True)
    try:
        yield
    finally:
        _is_quiet.reset(token)


def _is_heard(_record: logging.LogRecord) -> bool:
    return not _is_quiet.get()


for _name in CHATTY:
    logging.getLogger(_name).addFilter(_is_heard)
