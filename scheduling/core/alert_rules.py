"""What alerts can be about: the kinds of rules, with their thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Severity(StrEnum):
    """How urgent an alert is."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """A greater number is more urgent."""
        return list(Severity).index(self)


class RuleKind(StrEnum):
    """What a rule looks at."""

    INBOX = "inbox"
    RETRIED = "retried"
    RETRY_SHARE = "retry_share"
    NOT_STARTED = "not_started"
    NOT_FINISHED = "not_finished"
    FAILED_IN_A_ROW = "failed_in_a_row"
    SLOW = "slow"
    SKIPPED = "skipped"
    PAUSED_BY_FAILURES = "paused_by_failures"
    GROUP_BACK = "group_back"
    BREAKER = "breaker"
    NO_PRODUCER = "no_producer"
    NO_CONSUMER = "no_consumer"
    BROKER_AWAY = "broker_away"
    DATABASE_AWAY = "database_away"
    DISK = "disk"
    CLOCK = "clock"
    HOLD = "hold"


class Threshold(StrEnum):
    """A column of a rule that a kind may use."""

    NUMBER = "number"
    """A count, a percentage or a factor. The kind says which."""
    SECONDS = "seconds"
    """A span."""


@dataclass(frozen=True)
class Bounds:
    """The value that a threshold has at first, and the lowest and the highest value."""

    default: float
    least: float
    most: float


@dataclass(frozen=True)
class KindFacts:
    """The facts about one kind of rule.

    Args:
        severity: the severity that a new rule has.
        bounds: the thresholds that the rule uses.
        has_scope: whether the rule can be about one schedule or one group. The other kinds are about the installation.
        needs_schedule: whether the rule must name a schedule, and a time of the day in the zone of this schedule.
        calm_seconds: for so long the situation must be gone before the alert is over.
    """

    severity: Severity
    bounds: Mapping[Threshold, Bounds] = field(default_factory=dict)
    has_scope: bool = False
    needs_schedule: bool = False
    calm_seconds: int = 30


_DAY = 86_400.0
_NUMBER, _SECONDS = Threshold.NUMBER, Threshold.SECONDS

KINDS: Mapping[RuleKind, KindFacts] = {
    RuleKind.INBOX: KindFacts(Severity.WARNING, {_NUMBER: Bounds(10, 0, 1_000_000)}, has_scope=True),
    RuleKind.RETRIED: KindFacts(Severity.WARNING, {_NUMBER: Bounds(2, 1, 1_000)}, has_scope=True),
    RuleKind.RETRY_SHARE: KindFacts(Severity.WARNING, {_NUMBER: Bounds(20, 1, 100)}, has_scope=True),
    RuleKind.NOT_STARTED: KindFacts(Severity.CRITICAL, {_SECONDS: Bounds(300, 60, 7 * _DAY)}, has_scope=True),
    RuleKind.NOT_FINISHED: KindFacts(Severity.CRITICAL, {}, has_scope=True, needs_schedule=True),
    RuleKind.FAILED_IN_A_ROW: KindFacts(Severity.WARNING, {_NUMBER: Bounds(3, 1, 10)}, has_scope=True),
    RuleKind.SLOW: KindFacts(Severity.WARNING, {_NUMBER: Bounds(2, 1, 100)}, has_scope=True),
    RuleKind.SKIPPED: KindFacts(Severity.WARNING, has_scope=True),
    RuleKind.PAUSED_BY_FAILURES: KindFacts(Severity.WARNING, has_scope=True),
    RuleKind.GROUP_BACK: KindFacts(Severity.WARNING, has_scope=True),
    RuleKind.BREAKER: KindFacts(Severity.WARNING),
    RuleKind.NO_PRODUCER: KindFacts(Severity.CRITICAL, calm_seconds=0),
    RuleKind.NO_CONSUMER: KindFacts(Severity.CRITICAL),
    RuleKind.BROKER_AWAY: KindFacts(Severity.CRITICAL, {_SECONDS: Bounds(30, 10, _DAY)}, calm_seconds=0),
    RuleKind.DATABASE_AWAY: KindFacts(Severity.CRITICAL, {_SECONDS: Bounds(30, 10, _DAY)}, calm_seconds=0),
    RuleKind.DISK: KindFacts(Severity.CRITICAL, {_NUMBER: Bounds(10, 1, 90)}, calm_seconds=300),
    RuleKind.CLOCK: KindFacts(Severity.WARNING),
    RuleKind.HOLD: KindFacts(Severity.CRITICAL),
}
