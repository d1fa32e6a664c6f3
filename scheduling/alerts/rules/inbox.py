"""Finds failures that wait in the inbox."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import Group
from django.db.models import Count as Counted
from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from scheduling.alerts.further_runs import FurtherRuns
from scheduling.alerts.look import Look
from scheduling.alerts.runs import MOST_RUNS
from scheduling.alerts.schedules import Schedule
from scheduling.alerts.wanted import Wanted
from scheduling.core.alerts import Situation
from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution
from scheduling.models.counts import Count, counts

LEAST_CAP = 1_000
"""Failures are counted up to this number, or up to the highest limit of a rule."""

MOST_GROUPS = 200
"""The failures of so many user groups are counted, if there are too many to look at each of them."""

COUNTED_FOR = timedelta(minutes=1)
"""So long the counts of an inbox with very many failures are remembered, while its newest failures stay the same."""

_Counted = tuple[Mapping[int | None, Count], Mapping[tuple[int | None, int | None], int]]
"""The counts by group, and those by schedule and group."""


def full_inbox(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """More failures wait in the inbox than the rule allows.

    The failures of each group are counted on their own. So no user is told a number of another group.
    """
    schedules = look.schedules({rule.schedule for rule in rules if rule.schedule is not None})
    waiting = _waiting([rule for rule in rules if _is_in_scope(rule, schedules)], schedules, look)
    for rule in rules:
        if rule.pk not in waiting:
            continue
        for group, number in waiting[rule.pk].items():
            if number.number <= rule.number:
                continue
            facts = {"count": number, "limit": rule.number}
            seen = _("Failures in the inbox: %(count)s. The limit is %(limit)d.") % facts
            advice = _("Fix the cause, then republish.")
            subject = _("failed inbox")
            if rule.schedule is not None and group == schedules[rule.schedule].group:  # a former group sees no name
                subject = schedules[rule.schedule].name
            yield rule, Situation(key_of("inbox", group), subject, seen, advice, rule.schedule, group=group)


def key_of(name: str, group: int | None) -> str:
    """The key of a situation that is looked for in each group."""
    return name if group is None else f"{name} of group {group}"


def _is_in_scope(rule: Wanted, schedules: Mapping[int, Schedule]) -> bool:
    """Whether the rule can find anything: it may name a schedule that has another group by now."""
    return rule.schedule is None or rule.covers(rule.schedule, schedules[rule.schedule].group)


def _waiting(
    rules: Sequence[Wanted], schedules: Mapping[int, Schedule], look: Look
) -> Mapping[int, Mapping[int | None, Count]]:
    """How many failures wait within the scope of each rule, by group."""
    scopes = [(run.scheduler_id, run.group_id) for run in look.failures]
    groups = {None, *(group for _schedule, group in scopes)}
    if len(scopes) < MOST_RUNS:
        found: Mapping[int | None, Count] = {
            group: Count(sum(other == group for _schedule, other in scopes)) for group in groups
        }
        of_schedules: Mapping[tuple[int | None, int | None], int] = Counter(scopes)
    else:
        cap = max(LEAST_CAP, *(int(rule.number) for rule in rules))
        # The failures of a group may be older than the newest ones, and may have an alert.
        groups |= {rule.group for rule in rules if rule.group is not None}
        groups |= {one.situation.group for one in look.alerts_of(rules) if one.situation is not None}
        groups |= set(Group.objects.order_by("pk").values_list("pk", flat=True)[:MOST_GROUPS])
        found, of_schedules = _counted(cap, frozenset(groups), frozenset(schedules), look)
    return {
        rule.pk: {group: number for group, number in found.items() if rule.group in (None, group)}
        if rule.schedule is None
        else {
            group: Count(number)
            for (schedule, group), number in of_schedules.items()
            if schedule == rule.schedule and rule.covers(schedule, group)
        }
        for rule in rules
    }


def _counted(cap: int, groups: frozenset[int | None], schedules: frozenset[int], look: Look) -> _Counted:
    """The counts of a very full inbox. They are found anew as soon as one of its newest failures comes or goes."""
    same = (cap, groups, schedules, tuple(run.pk for run in look.failures))
    known = look.memory.known("full inbox", look.now, COUNTED_FOR)
    if known is not None and known[0] == same:
        counted: _Counted = known[1]
        return counted
    failures = SchedulerExecution.objects.in_state(State.FAILED)
    parts = {group: [failures.filter(Q(group=group) if group else Q(group__isnull=True))] for group in groups}
    counted = counts(parts, cap), _of_schedules(schedules, failures, look)
    look.memory.keep("full inbox", look.now, (same, counted))
    return counted


def _of_schedules(schedules: Set[int], failures: QuerySet[Any], look: Look) -> dict[tuple[int | None, int | None], int]:
    """How many of the newest runs of each schedule wait in the inbox, by schedule and group."""
    found: dict[tuple[int | None, int | None], int] = {}
    for ranges in FurtherRuns(look.memory, look.now).ranges(schedules):
        rows = failures.filter(Q(*ranges, _connector=Q.OR)).order_by()
        counted = rows.values_list("scheduler", "group").annotate(number=Counted("pk"))
        found |= {(schedule, group): number for schedule, group, number in counted}
    return found
