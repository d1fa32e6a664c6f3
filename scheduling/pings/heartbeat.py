"""The outbound heartbeat: while this installation evaluates its alerts, a monitor elsewhere hears of it every minute.

When everything is dead, the pings stop, and the monitor tells a person. The protocol is that of Healthchecks.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Condition, Thread

from scheduling.conf import get_conf
from scheduling.core.pings import Event, host_of, last_lines, ping_url
from scheduling.core.text import visible_text
from scheduling.logs import get_logger
from scheduling.pings.bounded import Ending, Request, send_all
from scheduling.pings.healthchecks import HEADERS
from scheduling.processes.server_clock import elapsed_seconds

log = get_logger(__name__)

EVERY = 60.0
"""The seconds between two heartbeats."""

AGAIN = 10.0
"""The seconds until a heartbeat that was not delivered is sent again."""


@dataclass(frozen=True)
class Verdict:
    """What the monitor is told: whether the installation works, and in a few words what does not."""

    healthy: bool = True
    text: str = ""


class Heartbeat:
    """Tells a monitor that this process evaluates alerts. `beat` never waits for the network.

    Args:
        url: the ping URL; None: that of the setting CRON_HEARTBEAT_URL. If it is empty, nothing is done.
        every: the seconds between two heartbeats.

    Attributes:
        problem: why the last heartbeat was not delivered: a sentence; empty if it was, or if none was sent yet.
        delivered: how many heartbeats were delivered.
        delivered_at: the monotonic time in seconds at which the last one was delivered; None if none was.
    """

    def __init__(self, url: str | None = None, every: float = EVERY) -> None:
        self._url = get_conf().heartbeat_url if url is None else url
        self._every = every
        self._changed = Condition()
        self._thread: Thread | None = None
        self._wanted: Verdict | None = None
        self._last: Verdict | None = None
        self._due = float("-inf")
        self._stopped = True
        self.problem = ""
        self.delivered = 0
        self.delivered_at: float | None = None

    @property
    def host(self) -> str:
        """The monitor's host, which may be shown; empty if there is no heartbeat."""
        return host_of(self._url)

    def start(self) -> None:
        """Start the thread. Without a URL, nothing is started."""
        if self._url and (self._thread is None or not self._thread.is_alive()):
            self._stopped = False
            self._thread = Thread(target=self._run, name="outbound-heartbeat", daemon=True)
            self._thread.start()

    def beat(self, now: float, healthy: bool = True, text: str = "") -> None:
        """Send a heartbeat if one is due, or if the health has changed. Returns at once. Call it every ten seconds.

        Args:
            now: the monotonic time in seconds.
            healthy: False: the monitor is told that the installation fails, at once and then with each heartbeat.
            text: what fails, in a few words, without secrets.
        """
        with self._changed:
            verdict = Verdict(healthy, text)
            has_changed = self._last is not None and self._last.healthy != healthy
            if self._stopped or not (now >= self._due or has_changed):
                return
            # While a call is on its way, the newest verdict waits for it.
            self._wanted, self._last = verdict, verdict
            self._due = now + (self._every if not self.problem else min(AGAIN, self._every))
            self._changed.notify()

    def stop(self, seconds: float = 1.0) -> None:
        """End the thread. A call that is on its way is given up after so many seconds."""
        with self._changed:
            self._stopped = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                while self._wanted is None and not self._stopped:
                    self._changed.wait()
                if self._stopped:
                    return
                verdict, self._wanted = self._wanted, None
            assert verdict is not None  # noqa: S101 - the loop has waited for it
            (end,) = send_all([self._request(verdict)])
            self._note(end)

    def _request(self, verdict: Verdict) -> Request:
        event = Event.SUCCESS if verdict.healthy else Event.FAIL
        url, body = ping_url(self._url, event), last_lines(visible_text(verdict.text)).encode()
        if verdict.healthy:
            return Request("GET", url, HEADERS, secrets=(self._url,))
        return Request("POST", url, HEADERS | {"Content-Type": "text/plain; charset=utf-8"}, body, (self._url,))

    def _note(self, end: Ending) -> None:
        with self._changed:
            if end.reason and not self.problem:
                log.warning("The heartbeat to %s was not delivered: %s", self.host, end.reason)
            elif self.problem and not end.reason:
                log.info("The heartbeat to %s is delivered again", self.host)
            if end.reason and not self.problem:
                self._due = min(self._due, self._due - self._every + AGAIN)
            self.problem = end.reason
            if not end.reason:
                self.delivered += 1
                self.delivered_at = elapsed_seconds()
