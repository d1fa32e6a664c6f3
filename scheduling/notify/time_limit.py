"""Bounds the time of one message to a chat or a webhook, and keeps its address out of the logs (`quiet_log`)."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Thread
from typing import Any

from django.utils import translation

from scheduling.conf import get_conf
from scheduling.notify.quiet_log import quiet

MOST_SECONDS = 10.0
"""The longest time for one message, in seconds."""


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
        with quiet(), translation.override(language):
            try:
                found.append(action())
            except Exception as error:
                found.append(error)

    thread = Thread(target=work, name="message", daemon=True)
    thread.start()
    thread.join(max(0.0, until - time.monotonic()) + 0.5)
    return bool(found), found[0] if found else None
