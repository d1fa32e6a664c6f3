"""Finds occurrences that have not started in time, whatever the reason."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from operator import itemgetter

from django.utils.translation import gettext as _

from scheduling.alerts.look import Look
from scheduling.alerts.repeated import RepeatedQuery
from scheduling.alerts.runs import Run
from scheduling.alerts.schedules import Schedule, names_for_runs
from scheduling.alerts.wanted import Scopes, Wanted
from scheduling.core.alerts import Situation
from scheduling.core.lifecycle import OCCURRENCES, State
from scheduling.core.text import visible_text
from scheduling.models import Scheduler
from scheduling.models.plan import PlanState
from scheduling.models.time_words import format_span

MOST_SCHEDULES = 500

WAITS = (State.QUEUED.value, State.CLAIMED.value, State.BLOCKED.value)


_due = RepeatedQuery(
    lambda since: Scheduler.objects.filter(status=True, next_run_at__lt=since).order_by("next_run_at", "pk"),
    ("pk",),
    MOST_SCHEDULES,
    itemgetter(0),
)
_aside = RepeatedQuery(
    lambda _now: Scheduler.objects.filter(plan_state=PlanState.SET_ASIDE).order_by("pk"),
    ("pk",),
    MOST_SCHEDULES,
    itemgetter(0),
)


def not_started(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """An active schedule has an occurrence that has been due for longer than the rule allows and has not started."""
    scopes, shortest = Scopes(rules), min(rule.span for rule in rules)
    late = _unclaimed(rules, look, shortest)
    waiting = _waiting(rules, look, shortest)
    schedules = look.schedules({run.scheduler_id for run in waiting if run.scheduler_id is not None})
    reasons, names = look.reasons(waiting), names_for_runs(waiting, schedules)
    # The earliest occurrence of a schedule tells of it.
    for schedule, since, text in late:
        for rule in scopes.of(schedule.pk, schedule.group):
            if since is None or look.now - since > rule.span:
                yield rule, _situation(schedule, since, text, look.now)
    for run in waiting:
        known = schedules.get(run.scheduler_id or 0)
        if known is None or not known.active or run.should_start_at is None or run.pk not in names:
            continue
        for rule in scopes.of(known.pk, run.group_id):
            if look.now - run.should_start_at > rule.span:
                said = _said(run, reasons.get(run.pk, ""))
                found = _situation(known, run.should_start_at, said, look.now)
                # The users of the schedule's former group are told of what it claimed in that group.
                key = found.key if run.group_id == known.group else f"{found.key} of group {run.group_id or 0}"
                yield rule, replace(found, key=key, subject=names[run.pk], execution=run.pk, group=run.group_id)


def _unclaimed(rules: Sequence[Wanted], look: Look, span: timedelta) -> list[tuple[Schedule, datetime | None, str]]:
    """The active schedules that no producer has claimed in time, and those that cannot be planned."""
    # Mostly there are none. Only the keys are asked for: to ask for all columns takes Django ten times as long.
    due_keys, aside_keys = _due.rows(look.now - span), _aside.rows()
    named = [rule.schedule for rule in rules if rule.schedule is not None]
    # There may be more than are asked for. An alert does not end because its schedule is not among the first ones.
    told = [one.situation.schedule for one in look.alerts_of(rules) if one.situation and one.situation.schedule]
    found = look.schedules(dict.fromkeys([*due_keys, *named, *told, *aside_keys]))
    said = _("No producer has claimed it.")
    late: list[tuple[Schedule, datetime | None, str]] = [
        (schedule, schedule.due_at, said)
        for schedule in found.values()
        if schedule.active and schedule.due_at is not None and look.now - schedule.due_at > span
    ]
    aside = dict.fromkeys([*aside_keys, *(pk for pk in told if pk in found and found[pk].plan_error)])
    late += [(one, None, one.problem) for pk in aside if (one := found.get(pk)) is not None and one.active]
    return late


def _waiting(rules: Sequence[Wanted], look: Look, span: timedelta) -> list[Run]:
    """The occurrences that were claimed and have not started, the oldest first."""
    found = {run.pk: run for run in look.waiting}
    for runs in look.runs_of({rule.schedule for rule in rules if rule.schedule is not None}).values():
        found |= {run.pk: run for run in runs if run.state in WAITS}
    return [
        run
        for run in sorted(found.values(), key=lambda run: run.pk)
        if run.scheduler_id is not None
        and run.attempt == 0
        and run.trigger in OCCURRENCES  # an operator who runs a schedule now sees by himself whether it starts
        and run.should_start_at is not None
        and look.now - run.should_start_at > span
    ]


def _said(run: Run, reason: str) -> str:
    if reason:
        return visible_text(reason, 300)
    if run.state == State.CLAIMED.value:
        return _("It is claimed, and the broker has not confirmed its message.")
    return _("It waits in its queue for a consumer with a free slot.")


def _situation(schedule: Schedule, since: datetime | None, text: str, now: datetime) -> Situation:
    if since is None:
        seen = _("It cannot be planned: %(error)s") % {"error": text}
    else:
        age = format_span((now - since).total_seconds())
        seen = _("It has been due for %(time)s and has not started. %(why)s") % {"time": age, "why": text}
    advice = _("See whether a producer and a consumer of its queue are alive, and what keeps it waiting.")
    return Situation(f"schedule {schedule.pk}", schedule.name, seen, advice, schedule.pk, group=schedule.group)
