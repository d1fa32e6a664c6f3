"""Knows since when this process has reached the database without a break, and how long to wait after an error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from django.db import connection

from scheduling.core.answer_windows import AnswerWindows
from scheduling.core.database_errors import Verdict
from scheduling.core.lifecycle import heartbeat_seconds
from scheduling.logs import get_logger
from scheduling.processes.database import verdict_of
from scheduling.processes.server_clock import elapsed_seconds

log = get_logger(__name__)

LONGEST_WAIT_SECONDS = 2.0
"""The longest wait between two tries. A process goes on this many seconds after the database is back, at most."""

PATIENCE_LEASES = 2
"""A lease also counts as lost if it ended so many lengths of a lease ago, counting only time in which the database
answered. Otherwise breaks that come again and again would delay the recovery for ever, as on a busy SQLite file."""

SAY_AGAIN_SECONDS = 60.0
"""During an outage, the first error is logged, and then one in this many seconds."""


class DatabaseAccess:
    """One process's view of the database: whether it answers, and since when without a break.

    While the database is away, no consumer can renew its leases, so all leases end. Therefore a lease that is over
    proves nothing until its owner has had the length of a lease to renew it (docs/decisions/0013). A process only knows
    since when the database answers itself: it waits for the length of a lease after each break. A new process has seen
    nothing yet, so it waits, too.

    SQLite has no server. A new process sees the same file as all others, so it need not wait.

    Args:
        lease_seconds: the length of a lease.
        elapsed: counts the seconds, with those for which the machine was suspended.
        server: whether the database is a server; None: look at the default connection.
    """

    def __init__(
        self, lease_seconds: float, elapsed: Callable[[], float] = elapsed_seconds, server: bool | None = None
    ) -> None:
        self._lease_seconds, self._elapsed = lease_seconds, elapsed
        self._longest_gap = lease_seconds / 2
        """A longer time without an answer counts as a break. Heartbeats come three times in a lease, so each lease
        lasts longer than this when the database stops answering."""
        server = connection.vendor != "sqlite" if server is None else server
        self._windows = AnswerWindows(PATIENCE_LEASES * lease_seconds, self._longest_wait)
        self._since: float | None = None if server else float("-inf")
        self._answered_at: float | None = None
        self._failures = 0
        self._away_at: float | None = None
        self._said_at = 0.0

    def answered(self) -> None:
        """Note that the database answers now."""
        now = self._elapsed()
        late = self._answered_at is not None and now - self._answered_at > self._longest_gap
        if self._since is None or late:
            self._since = now
        self._windows.answered(now, after_break=self._since == now)
        self._answered_at = now

    def succeeded(self) -> None:
        """Note that a turn has succeeded: the database answers, and the next error is the first of its kind."""
        self.answered()
        self._failures = 0
        if self._away_at is not None:
            log.info("The database answers again, after %.1f s", self._elapsed() - self._away_at)
            self._away_at = None

    @property
    def lost_after(self) -> float | None:
        """The seconds that must have passed since the end of a lease before it counts as lost, as far as this process
        knows.

        0.0: the owner of each lease could renew it for the length of a lease. None: no lease counts as lost.
        """
        now = self._elapsed()
        if self._since is not None and now - self._since >= self._lease_seconds:
            return 0.0
        since = self._windows.enough_since()
        return None if self._since is None or since is None else now - since

    @property
    def _longest_wait(self) -> float:
        return min(LONGEST_WAIT_SECONDS, heartbeat_seconds(self._lease_seconds))

    def failed(self, error: Exception) -> float:
        """Note and log that a turn has failed, and close the connection.

        Returns:
            The seconds to wait before the next try.
        """
        self._failures += 1
        delay = min(0.25 * 2.0 ** min(self._failures, 5), self._longest_wait)
        match verdict_of(error):
            case Verdict.ITEM:
                log.error("A turn failed; trying again in %.1f s", delay, exc_info=error)
            case Verdict.CONFLICT:
                log.warning("Another process held the same rows; trying again in %.1f s: %s", delay, _text(error))
            case _:
                self._since = None
                self._log_outage(error, delay)
        with suppress(Exception):
            connection.close()
        return delay

    def _log_outage(self, error: Exception, delay: float) -> None:
        now = self._elapsed()
        if self._away_at is None:
            self._away_at, self._said_at = now, now
            log.warning("The database did not answer; trying again in %.1f s: %s", delay, _text(error))
        elif now - self._said_at >= SAY_AGAIN_SECONDS:
            self._said_at = now
            log.warning("The database has not answered for %.0f s: %s", now - self._away_at, _text(error))
        else:
            log.debug("The database did not answer; trying again in %.1f s: %s", delay, _text(error))


def _text(error: Exception) -> str:
    return str(error).strip()
