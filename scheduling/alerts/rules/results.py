"""Finds schedules that fail again and again, and occurrences that were skipped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from operator import itemgetter

from django.db.models import Exists, OuterRef, QuerySet
from django.utils.translation import gettext as _

from scheduling.alerts.further_runs import Row
from scheduling.alerts.look import Look
from scheduling.alerts.repeated import KeyedQuery
from scheduling.alerts.runs import NAMED, Run, error_classes, runs_by_key
from scheduling.alerts.schedules import names_for_runs
from scheduling.alerts.wanted import Scopes, Wanted
from scheduling.core.alerts import Situation
from scheduling.core.known_sentences import for_reader
from scheduling.core.lifecycle import State
from scheduling.core.skip_reasons import is_on_purpose
from scheduling.models import SchedulerExecution
from scheduling.models.last_runs import FAILURES, failures_in_a_row

FURTHER_FOR = timedelta(minutes=2)
"""So long the failures in a row of a schedule are remembered, while its newest runs stay the same."""

OVERTAKEN_FOR = timedelta(minutes=10)

HAS_RUN = (
    State.RUNNING.value, State.RETRYING.value, State.SUCCEEDED.value, State.FAILED.value, State.DISCARDED.value,
)  # fmt: skip
"""The states of an execution that has started."""


def failed_in_a_row(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """The last runs of a schedule have failed, so many in a row.

    The schedules with many failures are looked at, those that a rule names, and those with an alert.
    """
    scopes = Scopes(rules)
    keys = _failing(rules, scopes, look)
    keys |= {rule.schedule for rule in rules if rule.schedule is not None}
    keys |= {one.situation.schedule for one in look.alerts_of(rules) if one.situation and one.situation.schedule}
    schedules = look.schedules(keys)
    found = [
        (rule, schedules[pk], number, schedules[pk].shown(last))
        for pk, (number, last) in _in_a_row(schedules, max(rule.number for rule in rules), look).items()
        for rule in scopes.of(pk, schedules[pk].group)
        if number >= rule.number
    ]
    errors = error_classes({run for *_others, run in found if run is not None})
    for rule, schedule, number, run in found:
        seen = _("Its last runs have failed. In a row: %(count)d.") % {"count": number}
        if error := errors.get(run or 0):
            seen += " " + _("The last error: %(error)s.") % {"error": error}
        advice = _("Fix the cause, then republish.")
        yield rule, Situation(f"schedule {schedule.pk}", schedule.name, seen, advice, schedule.pk, run, schedule.group)


def _failing(rules: Sequence[Wanted], scopes: Scopes, look: Look) -> set[int]:
    """The schedules that have enough failures, whether they wait in the inbox or were discarded."""
    general = [rule for rule in rules if rule.schedule is None]
    if not general:
        return set()
    groups = {rule.group for rule in general if rule.group is not None}
    own = (run for group in groups for run in look.failures_of_group(group))
    failures = {run.pk: run for run in (*look.failures, *look.discarded, *own)}
    tally = Counter(
        run.scheduler_id for run in failures.values()
        if run.scheduler_id is not None and scopes.of(run.scheduler_id, run.group_id)
    )  # fmt: skip
    least = min(rule.number for rule in general)
    return {pk for pk, number in tally.items() if number >= least}


def _in_a_row(schedules: Collection[int], most: float, look: Look) -> dict[int, Row]:
    """The failures since the last success of each schedule that has any.

    Args:
        most: rules ask for so many at most.
    """
    found: dict[int, Row] = {}
    further: dict[int, list[tuple[int, str]]] = {}
    for pk, runs in look.runs_of(schedules).items():
        number = failures_in_a_row(runs)
        if number < most and len(runs) >= look.runs_each and not any(run.state == State.SUCCEEDED for run in runs):
            further[pk] = [(run.pk, run.state) for run in runs]  # others lie between the failures
        elif number:
            found[pk] = Row(number, next(run for run in reversed(runs) if run.state in FAILURES))
    return found | _further(further, look)


def _further(schedules: Mapping[int, list[tuple[int, str]]], look: Look) -> dict[int, Row]:
    """The same for schedules whose newest runs, with these states, do not say it."""
    known = {pk: look.memory.known(("failures in a row", pk), look.now, FURTHER_FOR) for pk in schedules}
    changed = [pk for pk, newest in schedules.items() if known[pk] is None or known[pk][0] != newest]
    read = look.further_runs.failures(changed) if changed else {}
    for pk in changed:
        known[pk] = schedules[pk], read.get(pk)
        look.memory.keep(("failures in a row", pk), look.now, known[pk])
    return {pk: row for pk, (_newest, row) in known.items() if row is not None}


def skipped(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """The last occurrence of an active schedule did not run, and that was not meant."""
    scopes, newest = Scopes(rules), dict[int, Run]()
    named = [run for runs in look.runs_of(scopes.named).values() for run in runs if run.state == State.SKIPPED.value]
    skips = [*look.skips, *named, *_with_alert(rules, look)]
    reasons = look.reasons_of_skips(skips)
    for run in skips:
        if run.scheduler_id is not None and not is_on_purpose(reasons.get(run.pk, "")):
            known = newest.get(run.scheduler_id)
            if known is None or known.pk < run.pk:
                newest[run.scheduler_id] = run
    last = _last([run.pk for run in newest.values() if scopes.of(run.scheduler_id, run.group_id)], look)
    found = [run for run in newest.values() if run.pk in last]
    schedules = look.schedules({run.scheduler_id for run in found if run.scheduler_id is not None})
    names = names_for_runs(found, schedules)
    advice = _("Run it now if its work is still needed.")
    for run in found:
        schedule = schedules.get(run.scheduler_id or 0)
        if schedule is None or not schedule.active or run.pk not in names:
            continue
        for rule in scopes.of(schedule.pk, run.group_id):
            seen = for_reader(reasons.get(run.pk, "") or _("No reason was recorded."), 500)
            key = f"schedule {schedule.pk}"
            yield rule, Situation(key, names[run.pk], seen, advice, schedule.pk, run.pk, run.group_id)


def _with_alert(rules: Sequence[Wanted], look: Look) -> list[Run]:
    """The skipped executions that have an alert, and are older than the newest skipped ones."""
    newest = {run.pk for run in look.skips}
    keys = {one.situation.execution for one in look.alerts_of(rules) if one.situation is not None}
    older = [pk for pk in keys if pk is not None and pk not in newest]
    return [run for run in runs_by_key(older, NAMED).values() if run.state == State.SKIPPED.value] if older else []


def _last(skips: Sequence[int], look: Look) -> set[int]:
    """Those of the skipped executions after which no execution of the schedule has started.

    The others stay so, and are remembered.
    """
    overtaken: set[int] = look.memory.get("overtaken skips", look.now, OVERTAKEN_FOR, set)
    asked = [pk for pk in skips if pk not in overtaken]
    found = set(_without_later_run.rows(asked))
    overtaken |= set(asked) - found
    return found


def _not_overtaken() -> QuerySet[SchedulerExecution]:
    later = SchedulerExecution.objects.filter(scheduler=OuterRef("scheduler"), pk__gt=OuterRef("pk"), state__in=HAS_RUN)
    return SchedulerExecution.objects.exclude(Exists(later)).order_by()


_without_later_run = KeyedQuery(_not_overtaken, ("pk",), itemgetter(0))
