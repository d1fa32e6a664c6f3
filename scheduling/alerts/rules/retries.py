"""Finds runs that are retried often, and a high share of retries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, QuerySet, Sum, Value
from django.db.models.functions import Least
from django.utils.translation import gettext as _

from scheduling.alerts.look import Look
from scheduling.alerts.rules.inbox import key_of
from scheduling.alerts.runs import RETRIED, Run, runs_by_key
from scheduling.alerts.wanted import Scopes, Wanted
from scheduling.core.alerts import Situation
from scheduling.core.lifecycle import OPEN_STATES
from scheduling.models import Tally

LEAST_RUNS = 20
"""With fewer runs, a share says nothing."""

HOURS = 24
SETTLED_HOURS = 2
"""The tallies of older hours do not change any more. They are remembered."""
FRESH = timedelta(minutes=1)
"""So long the tallies of the last hours are remembered."""

LARGEST = 1_000_000_000
"""Plain SQL can write numbers whose sum no database can hold."""

_OPEN = {state.value for state in OPEN_STATES}

Pair = tuple[int, int]
"""Numbers of attempts and of retries."""


def retried(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """An open run has been retried more often than the rule allows."""
    scopes = Scopes(rules)
    named = (run for runs in look.runs_of(scopes.named).values() for run in runs if run.state in _OPEN)
    runs = {run.pk: run for run in (*look.retrying, *look.running, *named)}
    # A retry that is published waits as any other run. Only those with an alert are looked at, not all that wait.
    known = {one.situation.execution for one in look.alerts_of(rules) if one.situation is not None}
    missing = [pk for pk in known if pk is not None and pk not in runs]
    if missing:
        runs |= {pk: run for pk, run in runs_by_key(missing, RETRIED).items() if run.state in _OPEN}
    least = min(rule.number for rule in rules)
    for run in runs.values():
        if run.retries > least:
            for rule in scopes.of(run.scheduler_id, run.group_id):
                if run.retries > rule.number:
                    yield rule, _often(run)


def _often(run: Run) -> Situation:
    return Situation(
        f"execution {run.pk}",
        _("execution %(number)d of %(name)s") % {"number": run.pk, "name": run.target_name},
        _("It has been retried. Retries so far: %(count)d.") % {"count": run.retries},
        _("Read the errors of its attempts. Cancel it if further retries cannot help."),
        schedule=run.scheduler_id,
        execution=run.pk,
        group=run.group_id,
    )


def retry_share(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """Too many of the attempts within 24 hours were retries, by the tallies.

    A rule for all groups looks at the attempts of each group on their own.
    """
    named = frozenset(rule.schedule for rule in rules if rule.schedule is not None)
    schedules = look.schedules(named)
    by_schedule = _tallied(look, "schedule", named)
    by_group = _tallied(look, "group", frozenset())
    advice = _("Find the errors that are retried: list the attempts that failed.")
    for rule in rules:
        if rule.schedule is not None:
            schedule = schedules[rule.schedule]
            pair = by_schedule.get(rule.schedule, (0, 0))
            if rule.covers(rule.schedule, schedule.group) and (seen := _too_many(pair, rule.number)):
                yield rule, Situation("retries", schedule.name, seen, advice, rule.schedule, group=schedule.group)
            continue
        for group, pair in by_group.items():
            if rule.group in (None, group) and (seen := _too_many(pair, rule.number)):
                yield rule, Situation(key_of("retries", group), _("retries"), seen, advice, group=group)


def _too_many(pair: Pair, limit: float) -> str:
    """The facts if the share of retries is above the limit; empty if it is not."""
    attempts, retries = pair
    if attempts - retries < LEAST_RUNS or 100 * retries <= limit * attempts:
        return ""
    facts = {"share": 100 * retries / attempts, "retries": retries, "attempts": attempts, "limit": limit}
    seen = _("Of %(attempts)d attempts within 24 hours, %(retries)d were retries: %(share).0f %%.") % facts
    return f"{seen} {_('The limit is %(limit)g %%.') % facts}"


def _tallied(look: Look, column: str, chosen: frozenset[int | None]) -> dict[int | None, Pair]:
    """The attempts and retries of the last hours.

    Args:
        column: `group` for the sums of all groups, `schedule` for those of the chosen schedules.
    """
    if column == "schedule" and not chosen:
        return {}
    this_hour = look.now.replace(minute=0, second=0, microsecond=0)
    total: dict[int | None, Pair] = {}
    for back in range(HOURS):
        hour = this_hour - timedelta(hours=back)
        # A value that was found before the hour was settled does not hold any more: the process may have been without
        # the lease since then.
        age = FRESH if back < SETTLED_HOURS else look.now - hour - timedelta(hours=SETTLED_HOURS)
        for key, (attempts, retries) in look.memory.get(
            ("tallies", column, chosen, hour),
            look.now,
            age,
            lambda hour=hour: _of_hour(hour, column, chosen),  # type: ignore[misc]
        ).items():
            before = total.get(key, (0, 0))
            total[key] = before[0] + attempts, before[1] + retries
    return total


def _of_hour(hour: datetime, column: str, chosen: frozenset[int | None]) -> dict[int | None, Pair]:
    rows: QuerySet[Any] = Tally.objects.filter(hour=hour).order_by()
    if chosen:
        rows = rows.filter(schedule__in=chosen)
    sums = {name: Sum(Least(F(name), Value(LARGEST))) for name in ("attempts", "retries")}
    found = rows.values(column).annotate(all_attempts=sums["attempts"], all_retries=sums["retries"])
    return {
        row[column]: (int(row["all_attempts"] or 0), int(row["all_retries"] or 0))
        for row in found
        if row[column] is None or type(row[column]) is int
    }
