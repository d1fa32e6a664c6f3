"""Wanted: a rule as it is evaluated, with thresholds that are within their bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, NamedTuple

from django.utils.translation import gettext as _

from scheduling.alerts.repeated import RepeatedQuery
from scheduling.core.alert_rules import KINDS, KindFacts, RuleKind, Threshold
from scheduling.core.text import visible_text
from scheduling.models import AlertRule

MOST_RULES = 1_000
"""So many rules are evaluated, the oldest first."""

COLUMNS = ("pk", "name", "kind", "severity", "number", "seconds", "at", "schedule", "group", "error")


class RuleProblem(ValueError):
    """The rule cannot be evaluated. The text is a sentence that says why."""


@dataclass(frozen=True)
class Wanted:
    """A rule.

    Args:
        number: its count, percentage or factor; 0 if its kind has none.
        span: its span; zero if its kind has none.
        at: its time of the day, as it is stored.
        schedule, group: its scope; None for all. Both are None if its kind has no scope.
    """

    pk: int
    name: str
    kind: RuleKind
    severity: str
    number: float = 0.0
    span: timedelta = timedelta(0)
    at: str = ""
    schedule: int | None = None
    group: int | None = None

    def covers(self, schedule: int | None, group: int | None) -> bool:
        """Whether a row with this schedule and this group is within the scope."""
        return self.schedule in (None, schedule) and self.group in (None, group)


class Scopes:
    """Finds the rules within whose scope a row is.

    Args:
        rules: the rules of one kind. There may be hundreds, each for another schedule.
    """

    def __init__(self, rules: Sequence[Wanted]) -> None:
        self.named: dict[int, list[Wanted]] = {}
        """The rules that name a schedule, by its key."""
        self._others: list[Wanted] = []
        for rule in rules:
            if rule.schedule is None:
                self._others.append(rule)
            else:
                self.named.setdefault(rule.schedule, []).append(rule)

    def of(self, schedule: int | None, group: int | None) -> list[Wanted]:
        """The rules that cover a row with this schedule and this group."""
        own = self.named.get(schedule, ()) if schedule is not None else ()
        if not own and not self._others:
            return []
        return [rule for rule in (*own, *self._others) if rule.group is None or rule.group == group]


@dataclass
class Rules:
    """The rules that are on.

    Args:
        keys: their primary keys.
        wanted: those that can be evaluated.
        problems: why the others cannot be.
        errors: what is recorded about each of them.
    """

    keys: Sequence[int]
    wanted: list[Wanted] = field(default_factory=list)
    problems: dict[int, str] = field(default_factory=dict)
    errors: dict[int, Any] = field(default_factory=dict)


class _Stored(NamedTuple):
    """A row of the table of rules.

    Args:
        values: its columns up to `group`, as `wanted_of` takes them.
        error: its column `error`: why the rule could not be evaluated the last time.
        wanted: the rule; None if it cannot be evaluated.
    """

    values: tuple[Any, ...]
    error: Any
    wanted: Wanted | None


def _stored(row: tuple[Any, ...]) -> _Stored:
    *values, error = row
    try:
        return _Stored(tuple(values), error, wanted_of(values))
    except RuleProblem:
        return _Stored(tuple(values), error, None)


_enabled = RepeatedQuery(
    lambda _now: AlertRule.objects.filter(enabled=True).order_by("pk"), COLUMNS, MOST_RULES, _stored
)


def read_rules() -> Rules:
    """Read the rules that are on.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    read, bad = _enabled.rows_and_bad()
    rules = Rules([*(one.values[0] for one in read), *bad])
    rules.problems = dict.fromkeys(bad, _("The row cannot be read."))
    rules.errors = {one.values[0]: one.error for one in read}
    rules.wanted = [one.wanted for one in read if one.wanted is not None]
    for one in read:
        if one.wanted is None:
            rules.problems[one.values[0]] = _problem(one.values)
    return rules


def _problem(values: Sequence[Any]) -> str:
    """Why the rule with these values cannot be evaluated, in the present language; empty if it can be."""
    try:
        wanted_of(values)
    except RuleProblem as problem:
        return str(problem)
    return ""


def wanted_of(values: Sequence[Any]) -> Wanted:
    """The rule with these values of the columns.

    Raises:
        RuleProblem: it cannot be evaluated. Plain SQL may have written any value.
    """
    pk, name, kind, severity, number, seconds, at, schedule, group = values
    try:
        chosen = RuleKind(kind)
    except ValueError:
        raise RuleProblem(_("There is no such kind of rule: %(kind)s") % {"kind": f"{kind!r:.40}"}) from None
    facts = KINDS[chosen]
    if any(value is not None and type(value) is not int for value in (schedule, group)):
        raise RuleProblem(_("The schedule or the group of the rule cannot be read."))
    if not facts.has_scope:
        schedule = group = None
    if facts.needs_schedule and schedule is None:
        raise RuleProblem(_("The rule must name a schedule."))
    return Wanted(
        pk, visible_text(name, 100)[:100], chosen, visible_text(severity, 10)[:10],
        _within(number, facts, Threshold.NUMBER), timedelta(seconds=_within(seconds, facts, Threshold.SECONDS)),
        at if isinstance(at, str) else "", schedule, group,
    )  # fmt: skip


def _within(value: object, facts: KindFacts, threshold: Threshold) -> float:
    """The value of a threshold, or the default of the kind; 0 if the kind has no such threshold.

    Raises:
        RuleProblem: it is out of bounds.
    """
    bounds = facts.bounds.get(threshold)
    if bounds is None:
        return 0.0
    if value is None:
        return bounds.default
    usable = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not usable or not bounds.least <= value <= bounds.most:  # type: ignore[operator]
        said = _("The threshold must be from %(least)s to %(most)s, not %(value)s.")
        facts_said = {"least": f"{bounds.least:g}", "most": f"{bounds.most:g}", "value": f"{value!r:.40}"}
        raise RuleProblem(said % facts_said)
    return float(value)  # type: ignore[arg-type]


def span_of(rule: AlertRule) -> timedelta:
    """The span of a rule, or the default of its kind.

    Raises:
        RuleProblem: it is out of bounds, or there is no such kind.
    """
    try:
        facts = KINDS[RuleKind(rule.kind)]
    except ValueError as error:
        raise RuleProblem(str(error)) from error
    return timedelta(seconds=_within(rule.seconds, facts, Threshold.SECONDS))
