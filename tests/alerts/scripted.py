"""A rule of one kind with a channel, evaluated again and again at times that the test chooses."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from scheduling.alerts.evaluation import evaluate
from scheduling.alerts.look import Look
from scheduling.alerts.memory import Memory
from scheduling.core.alert_rules import RuleKind
from scheduling.models import Alert, AlertNotice, AlertRule, Channel, Process, Scheduler, SchedulerExecution
from tests.factories import SchedulerExecutionFactory

START = datetime(2026, 11, 25, 12, tzinfo=UTC)
LOOKS = 10


class Script:
    """Evaluates every ten seconds.

    Args:
        kind: the kind of the rule. All other rules are turned off.
        rule: columns of the rule.
    """

    def __init__(self, kind: RuleKind, now: datetime = START, **rule: Any) -> None:
        AlertRule.objects.all().delete()
        self.rule: AlertRule = AlertRule.objects.create(name=kind.value, kind=kind.value, **rule)
        self.channel, _created = Channel.objects.get_or_create(
            name="team", defaults={"address": "json://host", "tells_by_default": True}
        )
        self.now, self.memory = now, Memory()
        self.options: dict[str, Any] = {}
        self.beating: set[int] = set()
        """The processes that beat before each look, until they stop."""

    def look(self, times: int = LOOKS, seconds: float = 10) -> None:
        """Evaluate so many times."""
        for _time in range(times):
            self.now += timedelta(seconds=seconds)
            if self.beating:
                Process.objects.filter(pk__in=self.beating, stopped_at=None).update(heartbeat_at=self.now)
            evaluate(Look(self.now, memory=self.memory, **self.options))
            self.rule.refresh_from_db()

    def ago(self, **span: float) -> datetime:
        """The instant so long ago."""
        return self.now - timedelta(**span)

    @property
    def told(self) -> Counter[str]:
        """How many starts and ends the channel is told of."""
        return Counter(AlertNotice.objects.values_list("event", flat=True))

    def stays_silent(self) -> None:
        """Check that ten evaluations tell nothing more."""
        before = self.told
        self.look()
        assert self.told == before, list(Alert.objects.values_list("seen", flat=True))
        assert self.rule.error == ""

    def begins(self) -> Alert:
        """Check that ten evaluations tell of one start, and return the alert."""
        before = self.told
        self.look()
        assert self.told - before == Counter({"start": 1}), self.rule.error
        return Alert.objects.latest("pk")

    def ends(self) -> Alert:
        """Check that ten evaluations tell of one end, and return the alert."""
        before = self.told
        self.look()
        assert self.told - before == Counter({"end": 1}), self.rule.error
        alert = Alert.objects.latest("pk")
        assert alert.ended_at is not None
        return alert


def run_of(schedule: Scheduler | None, state: str, at: datetime, **columns: Any) -> SchedulerExecution:
    """An execution that is due at this instant. Its times are this instant, too, if they are not given."""
    given = {"executed_at": at, "published_at": at, "wake_at": at, "scheduled_at": at}
    if state not in ("queued", "claimed"):
        given |= {"started_at": at}
    if state in ("succeeded", "failed", "discarded", "cancelled", "skipped"):
        given |= {"finished_at": at, "wake_at": None}
    traits = {} if state == "queued" else {state: True}
    row: SchedulerExecution = SchedulerExecutionFactory(scheduler=schedule, **traits, **{**given, **columns})
    return row
