"""Logs why the alerts cannot be evaluated: at the beginning, now and then, and when it is over."""

from __future__ import annotations

from collections.abc import Callable

from scheduling.core.database_errors import Verdict
from scheduling.core.text import one_line
from scheduling.logs import get_logger
from scheduling.processes.database import verdict_of
from scheduling.processes.server_clock import elapsed_seconds

log = get_logger(__name__)

AGAIN_SECONDS = 900.0
"""A trouble that lasts is logged once in this time."""

CALM_SECONDS = 60.0
"""A trouble that comes back sooner is the same one."""

TEXT_CHARS = 300


class Complaint:
    """The trouble of one process. A database that is away for an hour costs a few lines."""

    def __init__(self, elapsed: Callable[[], float] = elapsed_seconds) -> None:
        self._elapsed = elapsed
        self._about: object = None
        self._since = self._said_at = 0.0
        self._quiet_at: float | None = None

    def say(self, error: Exception) -> None:
        """Log the error, unless the same trouble was logged lately."""
        now, verdict = self._elapsed(), verdict_of(error)
        about = type(error) if verdict is Verdict.ITEM else verdict
        quiet = self._quiet_at is not None and now - self._quiet_at >= CALM_SECONDS
        self._quiet_at = None
        if about == self._about and not quiet and now - self._said_at < AGAIN_SECONDS:
            log.debug("Alerts cannot be evaluated: %s", one_line(error)[:TEXT_CHARS])
            return
        if about != self._about or quiet:
            self._since = now
        self._about, self._said_at = about, now
        if verdict is Verdict.ITEM:
            log.error("Alerts cannot be evaluated", exc_info=error)
        elif verdict is Verdict.NOT_MIGRATED:
            log.warning("Alerts wait for manage.py migrate: %s", one_line(error)[:TEXT_CHARS])
        else:
            log.warning("Alerts cannot be evaluated now: %s", one_line(error)[:TEXT_CHARS])

    def over(self) -> None:
        """The alerts were evaluated, or another process does so."""
        now = self._elapsed()
        if self._about is None:
            return
        if self._quiet_at is None:
            self._quiet_at = now
        elif now - self._quiet_at >= CALM_SECONDS:
            log.info("Alerts are evaluated again")
            self._about = self._quiet_at = None
