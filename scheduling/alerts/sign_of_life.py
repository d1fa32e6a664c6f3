"""What the monitor outside of this installation is told: that the alerts are evaluated, and whether the site works."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from scheduling.alerts.reading import readable_and_bad
from scheduling.conf import get_conf
from scheduling.core.alert_rules import RuleKind
from scheduling.core.text import visible_text
from scheduling.models import Alert
from scheduling.models.mutes import not_muted
from scheduling.pings.heartbeat import EVERY, Heartbeat
from scheduling.processes.server_clock import elapsed_seconds

FAILING = (RuleKind.NO_PRODUCER, RuleKind.NO_CONSUMER, RuleKind.BROKER_AWAY, RuleKind.HOLD)
"""Alerts after which no run starts. The others are about single schedules, handlers or hosts."""

AWAY_SECONDS = 30.0
"""A database that comes back sooner is not told."""

NAMED = 5

TURNS = 6
"""The monitor is called after so many evaluations: each minute, with the default of CRON_ALERTS_SECONDS."""


class Delivery(NamedTuple):
    """How the last heartbeat to the monitor has ended.

    Args:
        at: when one was delivered last, by the database's clock; `NEVER` without a monitor; None if this process has
            delivered none.
        problem: why the last one was not delivered: a sentence; empty if it was.
    """

    at: datetime | None
    problem: str = ""


NEVER = datetime.fromtimestamp(0, UTC)


class SignOfLife:
    """The heartbeat of the process that evaluates. It stops when no process does.

    A mute also silences what the monitor is told.
    """

    def __init__(self) -> None:
        self._heartbeat = Heartbeat(every=min(EVERY, TURNS * get_conf().alerts_seconds))
        self._away_since: float | None = None

    @property
    def is_on(self) -> bool:
        """Whether a monitor is told."""
        return bool(self._heartbeat.host)

    @property
    def has_ended(self) -> bool:
        """Whether the monitor has answered, or could not be told."""
        return not self.is_on or bool(self._heartbeat.delivered or self._heartbeat.problem)

    def delivery(self, now: datetime) -> Delivery | None:
        """How the last heartbeat has ended; None if none has ended yet.

        Args:
            now: the present time by the database's clock.
        """
        if not self.is_on:
            return Delivery(NEVER)
        seconds, problem = self._heartbeat.delivered_at, self._heartbeat.problem
        if seconds is None:
            return Delivery(None, problem) if problem else None
        return Delivery(now - timedelta(seconds=elapsed_seconds() - seconds), problem)

    def evaluated(self, now: datetime) -> None:
        """The alerts were evaluated.

        Raises:
            django.db.DatabaseError: the database cannot be reached.
        """
        self._away_since = None
        if not self.is_on:
            return
        self._heartbeat.start()
        told = Alert.objects.filter(not_muted(now), not_muted(now, "rule__"))
        rows = told.filter(ended_at=None, kind__in=FAILING).order_by("pk")
        found, bad = readable_and_bad(rows, NAMED, ("pk", "rule_name", "seen"))
        names = [*(f"{rule}: {seen}" for _pk, rule, seen in found), *(f"alert {pk}" for pk in bad)]
        self._heartbeat.beat(elapsed_seconds(), healthy=not names, text=visible_text("\n".join(names)))

    def database_is_away(self) -> None:
        """The database cannot be reached, and this process has evaluated until then."""
        if self._away_since is None:
            self._away_since = elapsed_seconds()
        if self.is_on and elapsed_seconds() - self._away_since >= AWAY_SECONDS:
            self._heartbeat.beat(elapsed_seconds(), healthy=False, text="The database cannot be reached.")

    def close(self) -> None:
        """Send nothing any more."""
        self._heartbeat.stop(0)
