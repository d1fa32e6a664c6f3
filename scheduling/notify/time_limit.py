"""Bounds the time of one message to a chat or a webhook, and keeps its address out of the logs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextvars import ContextVar
from threading import Thread
from typing import Any

from django.utils import translation

from scheduling.conf import get_conf

MOST_SECONDS = 10.0
"""The longest time for one message, in seconds."""

CHATTY = (
    "apprise", "urllib3.connection", "urllib3.connectionpool", "urllib3.poolmanager", "urllib3.response",
    "urllib3.util.retry", "requests_hardened.ip_filter",
)  # fmt: skip
"""Loggers that write the URL of a request or the text of an answer. The URL of a chat or a webhook has its token."""

_is_quiet: ContextVar[bool] = ContextVar("is_quiet", default=False)


def time_limit() -> float:
    """The time limit for one message, in seconds. It is shorter than the lease of a run."""
    return min(MOST_SECONDS, get_conf().lease_seconds * 2 / 3)


def in_time(action: Callable[[], Any], until: float) -> tuple[bool, Any]:
    """Call the function in a thread of its own. Returns whether it came to its end in time, and its value.

    A server that sends one byte now and then, or a look-up of a name that hangs, is given up: no time limit of a
    connection ends them. The value is the error if the function raised one.

    Args:
        until: the end of the time limit, on the monotonic clock.
    """
    found: list[Any] = []
    language = translation.get_language()  # a new thread begins with the default language

    def work() -> None:
        _is_quiet.set(True)
        with translation.override(language):
            try:
                found.append(action())
            except Exception as error:
                found.append(error)

    thread = Thread(target=work, name="message", daemon=True)
    thread.start()
    thread.join(max(0.0, until - time.monotonic()) + 0.5)
    return bool(found), found[0] if found else None


def _is_heard(_record: logging.LogRecord) -> bool:
    return not _is_quiet.get()


for _name in CHATTY:
    logging.getLogger(_name).addFilter(_is_heard)
