"""Limits how often a child sends the progress of its handler."""

from __future__ import annotations

import time
from collections.abc import Callable

BURST = 20
"""How many reports are sent at once. After them, one report is sent in each EVERY_SECONDS."""

EVERY_SECONDS = 0.25


class ProgressLimit:
    """Sends the progress of one run. A handler may report in a tight loop, which must not flood the supervisor.

    Args:
        send: sends one report.
        monotonic: the clock, in seconds.
    """

    def __init__(self, send: Callable[[str], None], monotonic: Callable[[], float] = time.monotonic) -> None:
        self._send, self._monotonic = send, monotonic
        self._left, self._since = float(BURST), monotonic()
        self.unsent = ""
        """The newest report, if it was not sent. It goes with the outcome of the run."""

    def report(self, text: str) -> None:
        """Send the report, or keep it as `unsent`."""
        now = self._monotonic()
        self._left = min(self._left + (now - self._since) / EVERY_SECONDS, BURST)
        self._since = now
        if self._left < 1:
            self.unsent = text
            return
        self._left -= 1
        self.unsent = ""
        self._send(text)
