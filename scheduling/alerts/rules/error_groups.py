"""Finds error groups that had left the inbox and are back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence

from django.utils.translation import gettext as _

from scheduling.alerts.known_groups import note_groups
from scheduling.alerts.look import Look
from scheduling.alerts.runs import FAILURES, MOST_RUNS, Run, error_classes, runs_by_key
from scheduling.alerts.wanted import Wanted
from scheduling.core.alerts import Situation, error_group_key
from scheduling.core.lifecycle import State
from scheduling.core.text import visible_text
from scheduling.inbox.releases import releases_of
from scheduling.models import SchedulerExecution
from scheduling.models.time_words import format_span

PREFIX = "group "


def group_back(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """All failures of an error group had left the inbox, and it has a new one.

    The failures of one user group are an error group of their own, so that no user is told of other ones.
    """
    present: dict[str, list[Run]] = defaultdict(list)
    for run in look.failures:
        if run.fingerprint:
            present[error_group_key(run.fingerprint, run.group_id)].append(run)
    complete = len(look.failures) < MOST_RUNS
    if not complete:
        yield from _older(rules, present.keys(), look)
    back = note_groups(present.keys(), look.now, complete=complete)
    if not back:
        return
    ends = runs_by_key([run.pk for key in back for run in present[key]], (*FAILURES, "finished_at"))
    runs = {key: [ends[run.pk] for run in present[key] if run.pk in ends] for key in back}
    first = {key: min(own, key=lambda run: (run.finished_at or look.now, run.pk)) for key, own in runs.items() if own}
    releases = releases_of(run.pk for run in first.values())
    errors = error_classes([run.pk for run in first.values()])
    for key, run in first.items():
        for rule in rules:
            own = [one for one in runs[key] if rule.covers(one.scheduler_id, one.group_id)]
            if own:
                yield rule, _situation(key, own, run, releases.get(run.pk, ""), errors.get(run.pk, ""), look)


def _older(rules: Sequence[Wanted], present: Collection[str], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """The alerts about error groups whose failures are older than the newest ones of the inbox: they do not end."""
    standing = [(rule, one.situation) for rule in rules for one in look.alerts_of([rule]) if one.situation is not None]
    older = [(rule, one) for rule, one in standing if one.key.removeprefix(PREFIX) not in present]
    known = runs_by_key({one.execution for _rule, one in older if one.execution is not None}, FAILURES) if older else {}
    waits: dict[tuple[str, int | None], bool] = {}
    for rule, situation in older:
        run = known.get(situation.execution or 0)
        if run is None:  # it was removed, so it is not known which error group this was
            continue
        cause = run.fingerprint, run.group_id
        if cause not in waits:
            waits[cause] = run.state == State.FAILED.value or _waits(*cause)
        if waits[cause]:
            yield rule, situation


def _waits(fingerprint: str, group: int | None) -> bool:
    failures = SchedulerExecution.objects.in_state(State.FAILED)
    own = failures.filter(group=group) if group is not None else failures.filter(group__isnull=True)
    return own.filter(fingerprint=fingerprint).exists()


def _situation(key: str, own: Sequence[Run], first: Run, release: str, error: str, look: Look) -> Situation:
    age = format_span((look.now - (first.finished_at or look.now)).total_seconds())
    facts = {"count": len(own), "time": age, "release": visible_text(release, 100)}
    seen = _("It had left the inbox and is back since %(time)s. Failures: %(count)d.") % facts
    seen += (
        " " + (_("The first one is of the release %(release)s.") if release else _("Its release is unknown.")) % facts
    )
    schedules = {run.scheduler_id for run in own}
    return Situation(
        f"{PREFIX}{key}",
        _("%(error)s in %(name)s") % {"error": error or _("no error class"), "name": first.target_name},
        seen,
        _("Compare the release with the one that was to repair it. Fix the cause, then republish."),
        schedules.pop() if len(schedules) == 1 else None,
        first.pk,
        first.group_id,
    )
