"""Sends the pings that wait, in a thread of a producer or consumer. No run waits for it.

Each process may send each ping: those that wrote it, because they know at once that it is there, and all others after
the process has died. A thread that has nothing to do asks the database nothing. It is woken by the writer of a row, and
by the heartbeats of its process, which look for pings in the statement that they send anyway.

The rows are dated by the database's clock. The thread counts the same time, as its process does: with the clock of a
host that is wrong, it would put pings off for hours, or give them up.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import datetime
from threading import Condition, Thread

from django.db import connection
from django.db.models import QuerySet
from django.utils import timezone as clock

from scheduling.core import delivery_sentences as say
from scheduling.core.pings import FARTHEST, Kind, host_of, is_due, wait_before
from scheduling.core.targets import TARGETS
from scheduling.logs import get_logger
from scheduling.models import Ping, Scheduler
from scheduling.pings import healthchecks, sentry
from scheduling.pings.bounded import Ending, Request, send_all
from scheduling.pings.claims import claim, give_up_lost, put_off, record
from scheduling.pings.rows import note_other_ends, readable
from scheduling.processes.database import is_away

log = get_logger(__name__)

AT_ONCE = 4
"""So many pings are sent at the same time."""

AWAY_SECONDS = 5.0
"""How long the thread waits if the database cannot be reached."""

SOON_SECONDS = 0.2
"""The shortest time until the thread looks again."""

STOP_SECONDS = 3.0
"""How long a process that ends waits for the pings that are on their way."""

DUE, UNENDED = "pings due", "pings without an end"


def questions(now: datetime) -> dict[str, QuerySet]:
    """What a heartbeat asks the database: whether pings are due, and whether runs are over whose end was not told."""
    return {DUE: Ping.objects.due(now), UNENDED: Ping.objects.unended()}


class Sender:
    """Sends pings in a thread of its own. `ring` starts the thread."""

    def __init__(self) -> None:
        self._changed = Condition()
        self._thread: Thread | None = None
        self._rung = self._on = self._held = False
        self._now: Callable[[], datetime] = clock.now
        """The time of the database, from the first heartbeat of this process on."""
        self._ends_at: float | None = None
        """Until when this process may send, when it is about to end (monotonic)."""
        self._look_at: float | None = None
        """When the next ping is due (monotonic); None if none waits."""
        self._resting: dict[str, datetime] = {}
        """Hosts that did not answer, and until when nothing is sent to them. So one hanging monitor does not delay the
        pings of the others."""

    def switch_on(self) -> None:
        """From now on, `ring` sends. Until then it does nothing, so that tests and commands send nothing."""
        self._on, self._ends_at = True, None

    def ring(self) -> None:
        """Send what is due. Returns at once."""
        if not self._on or self._held:
            return
        with self._changed:
            self._rung = True
            if self._thread is None or not self._thread.is_alive():
                self._thread = Thread(target=self._run, name="pings", daemon=True)
                self._thread.start()
            self._changed.notify()

    def told(self, found: Collection[str], now: Callable[[], datetime], *, held: bool) -> None:
        """Take over the answers of a heartbeat to `questions`.

        Args:
            now: returns the time of the database, as this process counts it (`ServerClock.now`).
            held: whether this process must do nothing with its database. A copy of a database must not tell monitors.
        """
        self._now, self._held = now, held
        if {DUE, UNENDED} & set(found):
            self.ring()

    def stop(self, seconds: float = STOP_SECONDS) -> None:
        """Send what is due, for so many seconds at most. Other processes send the rest."""
        with self._changed:
            self._on, self._ends_at = False, time.monotonic() + seconds
            thread = self._thread
            self._changed.notify()
        if thread is not None:
            thread.join(seconds)

    def _run(self) -> None:
        try:
            while self._wait():
                try:
                    self._turn()
                except Exception as error:
                    if not is_away(error):
                        log.error("Pings cannot be sent: %s", error)
                    self._look_at = time.monotonic() + AWAY_SECONDS
                    connection.close()
        finally:
            connection.close()

    def _wait(self) -> bool:
        """Wait until there is something to do. Returns False if the process ends."""
        with self._changed:
            while self._on and not self._rung:
                left = None if self._look_at is None else self._look_at - time.monotonic()
                if left is not None and left <= 0:
                    break
                if left is None:
                    connection.close()  # nothing waits, perhaps for hours
                self._changed.wait(left)
            rung, self._rung = self._rung, False
            return self._on or rung

    @property
    def _may_send(self) -> bool:
        return not self._held and (self._on or (self._ends_at is not None and time.monotonic() < self._ends_at))

    def _turn(self) -> None:
        if self._held:
            self._look_at = None  # a heartbeat rings when the process may work again
            return
        note_other_ends(self._now())
        while self._may_send and self.send_due(self._now()):
            pass
        now = self._now()
        first, unusable = readable(Ping.objects.next_of_schedules().select_related("execution").order_by("at")[:1], now)
        if first or unusable:
            is_now = not first or is_due(first[0].at, now)
            left = SOON_SECONDS if is_now else max(SOON_SECONDS, (first[0].at - now).total_seconds())
            self._look_at = time.monotonic() + left
        else:
            self._look_at = None

    def send_due(self, now: datetime, limit: int = AT_ONCE) -> int:
        """Send up to `limit` pings that are due. Returns how many it has sent, put off or given up."""
        rows, unusable = readable(Ping.objects.due(now).select_related("execution").order_by("at", "pk")[:limit], now)
        lost = [ping for ping in rows if ping.sending and give_up_lost(ping, now)]
        claimed = [ping for ping in rows if ping not in lost and claim(ping, now)]
        prepared = [(ping, _request(ping)) for ping in claimed]
        calls: list[tuple[Ping, Request]] = []
        for ping, found in prepared:
            if isinstance(found, Ending):
                record(ping, found, "", self._now())
            elif now < (until := self._resting.get(host_of(found.url), now)) <= now + FARTHEST:
                put_off(ping, until, now)
            else:
                calls.append((ping, found))
        ends = send_all([request for _ping, request in calls])
        for (ping, request), end in zip(calls, ends, strict=True):
            host = host_of(request.url)
            record(ping, end, host, self._now())
            if end.silent:
                self._resting[host] = self._now() + wait_before(ping.tries)
            else:
                self._resting.pop(host, None)
        return len(claimed) + len(lost) + unusable


def _request(ping: Ping) -> Request | Ending:
    """The request of a ping. A row that cannot be used ends with its reason, and the others go on.

    The schedules are read one by one: one that cannot be read stops no ping of another.
    """
    schedule = Scheduler.objects.filter(pk=ping.scheduler_id)
    try:
        if ping.kind == Kind.SENTRY:
            return sentry.request_of(ping, schedule.select_related(*TARGETS).first())
        return healthchecks.request_of(ping, schedule.values_list("ping_url", flat=True).first() or "")
    except Exception as error:
        if is_away(error):
            raise
        return Ending(say.NO_PING.format(error=type(error).__name__))


sender = Sender()
"""Sends the pings of this process."""


@contextmanager
def sending() -> Iterator[None]:
    """Send pings from this process while the block runs."""
    sender.switch_on()
    try:
        yield
    finally:
        sender.stop()
