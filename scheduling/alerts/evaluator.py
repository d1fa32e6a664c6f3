"""One process's part in the alerts: it takes the lease, evaluates, sends, and tells when the database is away."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from django.db import connection, connections

from scheduling.alerts.brokers import AWAY_KEY, BrokerWatch, watch_of
from scheduling.alerts.complaint import Complaint
from scheduling.alerts.evaluation import evaluate
from scheduling.alerts.lease import (
    give_lease_back,
    holds_lease,
    lease_seconds,
    note_evaluation,
    note_heartbeat,
    take_lease,
)
from scheduling.alerts.look import Look
from scheduling.alerts.outage import Outage
from scheduling.alerts.outage_record import record
from scheduling.alerts.sending import Claim, Sender
from scheduling.alerts.sign_of_life import SignOfLife
from scheduling.alerts.step import cannot_be_reached, tried
from scheduling.alerts.tries import Send, Tries, send
from scheduling.conf import get_conf
from scheduling.core.alert_rules import KINDS, RuleKind, Threshold
from scheduling.core.lifecycle import silent_after
from scheduling.logs import get_logger
from scheduling.models import Alert
from scheduling.models.alert_watch import AlertWatch
from scheduling.models.process import AHEAD
from scheduling.processes.database import DATABASE_ERRORS, is_away
from scheduling.processes.guard import Guard
from scheduling.processes.identity import container_id
from scheduling.processes.server_clock import ServerClock, elapsed_seconds

log = get_logger(__name__)

LOOK_SECONDS = 0.5
"""The time between two looks of a process that evaluates once."""

BROKER_SECONDS = 31.0
"""Such a process looks at a broker that does not answer for so long: a second longer than the default of the rule."""


LAST_SECONDS = 1.0
"""A process that stops waits so long for the messages under way."""


def _never() -> bool:
    return False


class Evaluator:
    """Evaluates the alerts while this process holds the lease. No method raises an error.

    Its thread needs a connection of its own. The threads that send need none.

    Args:
        wake: called in another thread when a message was sent, so that the caller calls `between`.
        stops: whether the process stops. Then no further message is begun.
        name: names this process in the lease.
        send: sends one message.
    """

    def __init__(
        self,
        wake: Callable[[], None] = lambda: None,
        stops: Callable[[], bool] = _never,
        *,
        name: str = "",
        send: Send = send,
        clock: ServerClock | None = None,
    ) -> None:
        self._name, self._stops = name or container_id(), stops
        self._seconds = lease_seconds()
        self._clock = clock or ServerClock()
        self._broker = watch_of(get_conf().broker_url)
        self._guard = Guard()  # of this thread: that of the process belongs to its main thread
        self._sender = Sender(Tries(wake, send=send), self._clock.now)
        self._outage = Outage(Tries(wake, send=send))
        self._sign = SignOfLife()
        self._complaint = Complaint()
        self._had = False
        """Whether this process held the lease when it reached the database for the last time."""
        self._knows_broker = False
        """Whether it goes on with what the process before has told of the broker."""
        self._hold = ""
        self._is_away = self._was_fine = False
        self._answers_since: float | None = None
        self._answered_at = 0.0
        self._time: datetime | None = None
        """The time of the database at the last turn."""
        self.hurries = False
        """Whether the next turn should come soon, because the database could not be reached."""
        self.problem = ""
        """Why the last turn has not evaluated: a sentence; empty if it has, or if another process does."""

    def turn(self) -> bool:
        """Evaluate once and begin to send, if this process holds the lease. Returns whether it did."""
        try:
            held = self._take()
        except Exception as error:
            self._failed(error)
            self._answers_since = None
            self._is_away = cannot_be_reached(error)
            if self._is_away and self._had:
                self._tell_from_memory(error)
            self.hurries = self._is_away and self._had
            return False
        self._is_away = self.hurries = False
        self._had = held
        self._answered()
        try:
            if held:
                self._work()
            else:
                self._knows_broker = False
                self._outage.forget()
        except Exception as error:
            self._failed(error)
            if cannot_be_reached(error):
                self._answers_since = None
            self.hurries, self._was_fine = self._was_fine and cannot_be_reached(error), False
            return False
        self._was_fine, self.problem = True, ""
        self._complaint.over()
        return held

    def between(self) -> None:
        """Record what was sent, and begin with what is due, if this process still holds the lease."""
        if self._is_away:
            return
        try:
            self._record()
            if self._had and not self._stops() and holds_lease(self._name, self._clock.now()):
                self._begin()
        except Exception as error:
            self._complaint.say(error)

    @property
    def idle(self) -> bool:
        """Whether no message is being sent, and the monitor outside was told."""
        return self._sender.idle and self._outage.idle and (not self._had or self._sign.has_ended)

    @property
    def saw_too_little(self) -> bool:
        """Whether the broker is away, and a rule waits for longer than a process looks that evaluates once."""
        away = self._broker is not None and self._broker.away_seconds > 0
        return away and self._outage.broker_seconds > BROKER_SECONDS

    @property
    def settles_in(self) -> float:
        """The seconds until this process may judge which processes are alive.

        While the database is away, no process can record its heartbeat, so all of them look dead when it is back. A
        process that has just started does not know whether the database was away. And when a whole site starts, its
        processes come one after the other.
        """
        wait = silent_after(get_conf().lease_seconds).total_seconds()
        since = self._answers_since
        return wait if since is None else max(0.0, since + wait - elapsed_seconds())

    def prepare(self, seconds: float) -> None:
        """Learn what a process that stays knows: that the database answers, and for how long the broker has not.

        A process that evaluates once calls it before its turn.

        Args:
            seconds: so long it may take.
        """
        until = elapsed_seconds() + seconds
        while elapsed_seconds() < until and not self._stops():
            try:
                self._clock.compare()
                AlertWatch.objects.exists()  # SQLite has no server that `compare` could ask
            except Exception as error:
                self._failed(error)
                return
            self._answered()
            if self._broker is not None:
                self._broker.look()
            away = self._broker.away_seconds if self._broker is not None else 0.0
            if self.settles_in <= 0 and not 0 < away < BROKER_SECONDS:
                return
            time.sleep(LOOK_SECONDS)
        self.problem = "The alerts cannot be evaluated: there was too little time to look at the processes."

    def close(self) -> None:
        """Record the messages that end within a second, let another process take the lease, and disconnect.

        A message that is still under way is left: the next process sends it once more.
        """
        with suppress(Exception):
            if not self._is_away:
                self._record()
                until = time.monotonic() + LAST_SECONDS
                while not self._sender.idle and time.monotonic() < until:
                    time.sleep(0.05)
                    self._record()
                note_heartbeat(self._name, self._sign.delivery(self._clock.now()))
                give_lease_back(self._name)
        self._sign.close()
        if self._broker is not None:
            self._broker.close()
        with suppress(*DATABASE_ERRORS):
            connections.close_all()

    def _answered(self) -> None:
        """Note that the database answers. If this process was suspended, its machine may have been, with all others.

        If the database's clock was set back, the heartbeats of all processes lie ahead until they beat again.
        """
        now, time_ = elapsed_seconds(), self._clock.now()
        was_set_back = self._time is not None and time_ < self._time - AHEAD / 2
        if self._answers_since is None or now - self._answered_at > self._seconds or was_set_back:
            self._answers_since = now
        self._answered_at, self._time = now, time_

    def _take(self) -> bool:
        """Record what is left, and take the lease. If this fails, the database is away."""
        self._clock.compare()
        self._record()
        for story in self._outage.end(self._clock.now()):
            try:
                record(story, self._clock.now())
            except Exception as error:
                if is_away(error):
                    raise
                log.exception("An alert that was told from memory cannot be recorded")
            self._outage.recorded(story)
        return take_lease(self._name, self._clock.now(), self._seconds)

    def _work(self) -> None:
        now = self._clock.now()
        if self._broker is not None:
            if not self._knows_broker:
                self._continue(self._broker)
            self._broker.look()
        hold = self._guard.look()
        self._hold = hold.said if hold is not None else ""
        # A defect of one step stops no other one. The monitor outside is told only if there is none.
        defects = [defect for step in (self._evaluate, self._outage.remember, self._begin) if (defect := tried(step))]
        if defects:
            raise defects[0]
        self._sign.evaluated(now)

    def _evaluate(self) -> None:
        if self.settles_in <= 0:
            evaluate(Look(self._clock.now(), self._broker, hold=self._hold))
            now = self._clock.now()
            note_evaluation(now, self._sign.delivery(now))

    def _continue(self, broker: BrokerWatch) -> None:
        """Go on with what the process before has found: its watch of the broker was in its memory."""
        if Alert.objects.filter(kind=RuleKind.BROKER_AWAY, key=AWAY_KEY, ended_at=None).exists():
            broker.assume_away(KINDS[RuleKind.BROKER_AWAY].bounds[Threshold.SECONDS].most)
        self._knows_broker = True

    def _record(self) -> None:
        for telling, ending in self._outage.late(self._clock.now()):
            claim = Claim(telling.message or 0, telling.tries, telling.repeats, telling.created_at)
            self._sender.adopt(claim, ending)
        self._sender.record()

    def _begin(self) -> None:
        self._sender.begin(self._may_go_on, only_holds=bool(self._hold))

    def _may_go_on(self) -> bool:
        return not self._stops() and take_lease(self._name, self._clock.now(), self._seconds)

    def _failed(self, error: Exception) -> None:
        self.problem = f"The alerts cannot be evaluated: {' '.join(str(error).split()) or type(error).__name__}"
        self._complaint.say(error)
        with suppress(Exception):
            connection.close()

    def _tell_from_memory(self, error: Exception) -> None:
        try:
            self._sign.database_is_away()
            if self._broker is not None and self._outage.knows_rules:
                self._broker.look()
            self._outage.turn(self._clock.now(), str(error), self._broker)
        except Exception as defect:
            self._complaint.say(defect)
