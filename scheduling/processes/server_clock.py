"""The time of the database server, by which claims, starts and leases are dated in every process.

The hosts of producers and consumers may have different clocks. If each host dated its own leases, a host whose clock is
ahead would take the leases of healthy consumers for expired, and would skip the occurrences of several hours.

SQLite has no server: all processes share the clock of one host, so that clock is used as it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper
from django.utils import timezone

from scheduling.conf import get_conf
from scheduling.core.clock_skew import Skew, skew
from scheduling.logs import get_logger

log = get_logger(__name__)


def elapsed_seconds() -> float:
    """Seconds that no step of the host's clock changes; with those for which the machine was suspended, on Linux."""
    boot_time = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot_time is None else time.clock_gettime(boot_time)


TIME = {"postgresql": "clock_timestamp()", "mysql": "UTC_TIMESTAMP(6)"}
"""The SQL expression of the server's time."""


def server_time(database: BaseDatabaseWrapper) -> datetime:
    """The time of the database server, in UTC.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    with database.cursor() as cursor:
        cursor.execute(f"SELECT {TIME[database.vendor]}")
        return in_utc(cursor.fetchone()[0])


def in_utc(theirs: datetime) -> datetime:
    """The server's time with its time zone. PostgreSQL's time has one. MySQL's time has none and is in UTC."""
    return theirs if theirs.tzinfo else theirs.replace(tzinfo=UTC)


def measure(database: BaseDatabaseWrapper) -> tuple[datetime, Skew]:
    """Ask the server for its time; returns this time and how far this host's clock is from it."""
    before = time.time()
    theirs = server_time(database)
    after = time.time()
    return theirs, skew(before, theirs.timestamp(), after)


def ask() -> tuple[datetime, Skew] | None:
    """The result of `measure`; None with SQLite."""
    return None if connection.vendor == "sqlite" else measure(connection)


class ServerClock:
    """The database server's time in one process. Between two comparisons, the time is counted and not asked for.

    Args:
        now: this host's clock. It is used with SQLite, and until the first comparison.
        ask: returns the server's time and the skew; None if there is no server.
        elapsed: counts the seconds.
    """

    def __init__(
        self,
        now: Callable[[], datetime] = timezone.now,
        ask: Callable[[], tuple[datetime, Skew] | None] = ask,
        elapsed: Callable[[], float] = elapsed_seconds,
    ) -> None:
        self._now, self._ask, self._elapsed = now, ask, elapsed
        self._compared: tuple[datetime, float] | None = None
        self._warned = self._refused = False
        self.skew = Skew()

    def now(self) -> datetime:
        """The server's time. A step of this host's clock does not change it."""
        if self._compared is None:
            return self._now()
        theirs, at = self._compared
        return theirs + timedelta(seconds=self._elapsed() - at)

    @property
    def trusted(self) -> bool:
        """Whether this host's clock is near enough to the server's to claim, start and recover runs.

        A handler sees this host's clock. With a wrong one, it would work for the wrong day.
        """
        return self.skew.certain < get_conf().clock_limit_seconds

    def compare(self) -> None:
        """Ask the server for its time. Log once if the clocks differ too much, and once if they agree again.

        Raises:
            django.db.DatabaseError: the database cannot be reached.
        """
        self.learn(self._ask())

    def learn(self, answer: tuple[datetime, Skew] | None) -> None:
        """Take over the server's time and the skew, just measured; None changes nothing."""
        if answer is None:
            return
        theirs, self.skew = answer
        at = self._elapsed()
        if self._compared is not None:
            # The server read its clock before its answer arrived, so both times are late by a part of a query's
            # duration: the greater one is nearer. If it is too great even for the whole duration, the server's clock
            # was set back.
            counted = self._compared[0] + timedelta(seconds=at - self._compared[1])
            if theirs < counted <= theirs + timedelta(seconds=2 * self.skew.uncertainty):
                theirs = counted
        self._compared = theirs, at
        self._report()

    def _report(self) -> None:
        warned, refused = self.skew.certain >= get_conf().clock_warn_seconds, not self.trusted
        if (warned, refused) == (self._warned, self._refused):
            return
        self._warned, self._refused = warned, refused
        if refused:
            log.error("The clock is %s the database's; nothing is claimed, started or recovered here", self.skew)
        elif warned:
            log.warning("The clock is %s the database's", self.skew)
        else:
            log.info("The clock agrees with the database's again")
