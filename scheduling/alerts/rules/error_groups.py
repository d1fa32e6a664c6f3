"""Finds error groups that had left the inbox and are back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from django.utils.translation import gettext as _

from scheduling.alerts.known_groups import note_groups
from scheduling.alerts.look import Look
from scheduling.alerts.runs import FAILURES, MOST_RUNS, Run, runs_by_key
from scheduling.alerts.wanted import Wanted
from scheduling.core.alerts import Situation, error_group_key
from scheduling.core.text import visible_text
from scheduling.inbox.releases import releases_of
from scheduling.models import SchedulerExecution
from scheduling.models.time_words import format_span


def group_back(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """All failures of an error group had left the inbox, and it has a new one.

    The failures of one user group are an error group of their own, so that no user is told of other ones.
    """
    present: dict[str, list[Run]] = defaultdict(list)
    for run in look.failures:
        if run.fingerprint:
            present[error_group_key(run.fingerprint, run.group_id)].append(run)
    back = note_groups(present.keys(), look.now, complete=len(look.failures) < MOST_RUNS)
    if not back:
        return
    ends = runs_by_key([run.pk for key in back for run in present[key]], (*FAILURES, "finished_at"))
    runs = {key: [ends[run.pk] for run in present[key] if run.pk in ends] for key in back}
    first = {key: min(own, key=lambda run: (run.finished_at or look.now, run.pk)) for key, own in runs.items() if own}
    releases = releases_of(run.pk for run in first.values())
    errors = _errors(first)
    for key, run in first.items():
        for rule in rules:
            own = [one for one in runs[key] if rule.covers(one.scheduler_id, one.group_id)]
            if own:
                yield rule, _situation(key, own, run, releases.get(run.pk, ""), errors.get(run.pk, ""), look)


def _errors(first: Mapping[str, Run]) -> dict[int, str]:
    rows = SchedulerExecution.objects.filter(pk__in=[run.pk for run in first.values()])
    return {pk: visible_text(error, 200) for pk, error in rows.values_list("pk", "error_class")}


def _situation(key: str, own: Sequence[Run], first: Run, release: str, error: str, look: Look) -> Situation:
    age = format_span((look.now - (first.finished_at or look.now)).total_seconds())
    facts = {"count": len(own), "time": age, "release": visible_text(release, 100)}
    seen = _("It had left the inbox and is back since %(time)s. Failures: %(count)d.") % facts
    seen += (
        " " + (_("The first one is of the release %(release)s.") if release else _("Its release is unknown.")) % facts
    )
    schedules = {run.scheduler_id for run in own}
    return Situation(
        f"group {key}",
        _("%(error)s in %(name)s") % {"error": error or _("no error class"), "name": first.target_name},
        seen,
        _("Compare the release with the one that was to repair it. Fix the cause, then republish."),
        schedules.pop() if len(schedules) == 1 else None,
        first.pk,
        first.group_id,
    )
