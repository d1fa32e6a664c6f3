"""Watches whether the broker can be reached, from the process that evaluates the alerts."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import Thread

from scheduling.broker import Broker, BrokerError, TopologyMismatch, get_broker
from scheduling.core.text import visible_text
from scheduling.logs import get_logger
from scheduling.processes.server_clock import elapsed_seconds

log = get_logger(__name__)

REASON_CHARS = 200

AWAY_KEY = "broker"
"""The key of an alert about a broker that cannot be reached. A broker that takes no messages has another one
(`rules.away`)."""

WAIT_SECONDS = 3.0
"""So long a look is waited for. An answer that comes later counts at the next look."""

SILENT_SECONDS = 10.0
"""A broker that has not answered for so long is away."""


class BrokerWatch:
    """Since when the broker cannot be reached. It is kept in memory, so it needs no database.

    A broker that is suspended accepts connections and answers nothing. So each question is asked in a thread of its
    own, one at a time. The connection stays open between two looks: it is made anew by itself, and it logs one line
    when it is lost and one when it is back.

    Args:
        url: CRON_BROKER_URL.
        elapsed: counts the seconds.
        wait: so many seconds a look is waited for.
        silent: after so many seconds without an answer, the broker is away.
    """

    def __init__(
        self,
        url: str,
        elapsed: Callable[[], float] = elapsed_seconds,
        wait: float = WAIT_SECONDS,
        silent: float = SILENT_SECONDS,
    ) -> None:
        self._url, self._elapsed, self._wait, self._silent = url, elapsed, wait, silent
        self._broker: Broker | None = None
        self._thread: Thread | None = None
        self._began = 0.0
        self._since: float | None = None
        self._closed = False
        self.reason = ""
        """Why it could not be reached the last time."""

    def look(self) -> None:
        """Ask the broker something, and note whether it answers. It raises no error, and ends after a few seconds."""
        if self._thread is None or not self._thread.is_alive():
            self._began = self._elapsed()
            thread = Thread(target=self._ask, args=(self._began,), name="alerts-broker", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the process has no room for another thread
                log.debug("The broker is not asked now: %s", error)
                return
            self._thread = thread
        self._thread.join(self._wait)
        if self._thread.is_alive() and self._elapsed() - self._began >= self._silent:
            self._away(self._began, "It does not answer.")

    def assume_away(self, seconds: float) -> None:
        """Count it as away for so long already, until a look finds it: the process before this one has told so."""
        if self._since is None:
            self._since = self._elapsed() - seconds

    @property
    def away_seconds(self) -> float:
        """For how many seconds it has been away; 0 if it can be reached."""
        since = self._since
        return 0.0 if since is None else max(0.0, self._elapsed() - since)

    def close(self) -> None:
        """Disconnect, in the background: a broker that does not answer must not keep the process from stopping."""
        self._closed = True
        if self._thread is None or not self._thread.is_alive():
            with suppress(RuntimeError):
                Thread(target=self._disconnect, name="alerts-broker", daemon=True).start()

    def _ask(self, began: float) -> None:
        try:
            if self._broker is None:
                self._broker = get_broker(self._url)
            self._broker.counts()
        except TopologyMismatch:  # it has answered; the doctor reports the queue
            self._since, self.reason = None, ""
        except BrokerError as error:
            self._away(began, str(error))
        except Exception as error:
            log.debug("The broker cannot be asked", exc_info=True)
            self._away(began, type(error).__name__)
        else:
            self._since, self.reason = None, ""
        if self._closed:
            self._disconnect()

    def _away(self, began: float, reason: str) -> None:
        self.reason = visible_text(reason, REASON_CHARS)
        if self._since is None:
            self._since = began

    def _disconnect(self) -> None:
        broker, self._broker = self._broker, None
        if broker is not None:
            with suppress(BrokerError):
                broker.close()


def watch_of(url: str) -> BrokerWatch | None:
    """The watch of this broker; None where the database is the queue."""
    return None if url.startswith("database:") else BrokerWatch(url)
