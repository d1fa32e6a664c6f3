"""What each kind of rule looks for. One module for each area."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from scheduling.alerts.look import Look
from scheduling.alerts.rules import (
    away,
    breakers,
    deadlines,
    error_groups,
    host,
    inbox,
    processes,
    results,
    retries,
    rule_pauses,
    slow,
    starts,
)
from scheduling.alerts.wanted import Wanted
from scheduling.core.alert_rules import RuleKind
from scheduling.core.alerts import Situation

Finder = Callable[[Sequence[Wanted], Look], Iterator[tuple[Wanted, Situation]]]
"""Gets all rules of its kind, so that they can share queries. It yields the present situations, each with its rule.

Raises `RuleProblem` for a rule that cannot be evaluated. The evaluation then asks for each rule alone.
"""

FINDERS: Mapping[RuleKind, Finder] = {
    RuleKind.INBOX: inbox.full_inbox,
    RuleKind.RETRIED: retries.retried,
    RuleKind.RETRY_SHARE: retries.retry_share,
    RuleKind.NOT_STARTED: starts.not_started,
    RuleKind.NOT_FINISHED: deadlines.not_finished,
    RuleKind.FAILED_IN_A_ROW: results.failed_in_a_row,
    RuleKind.SLOW: slow.slow,
    RuleKind.SKIPPED: results.skipped,
    RuleKind.PAUSED_BY_FAILURES: rule_pauses.paused_by_failures,
    RuleKind.GROUP_BACK: error_groups.group_back,
    RuleKind.BREAKER: breakers.breaker,
    RuleKind.NO_PRODUCER: processes.no_producer,
    RuleKind.NO_CONSUMER: processes.no_consumer,
    RuleKind.BROKER_AWAY: away.brokers_away,
    RuleKind.DISK: host.disk,
    RuleKind.CLOCK: processes.clock,
    RuleKind.HOLD: processes.hold,
}
"""A database that is away is told from memory (`alerts.outage`), so that kind is not among them."""
