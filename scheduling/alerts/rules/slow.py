"""Finds runs that are slower than the runs of their schedule usually are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.utils.translation import gettext as _

from scheduling.alerts.look import Look
from scheduling.alerts.runs import Run
from scheduling.alerts.wanted import Scopes, Wanted
from scheduling.core.alerts import Situation
from scheduling.core.durations import SLOW_SECONDS
from scheduling.core.lifecycle import State
from scheduling.models.time_words import format_span


def slow(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """A run takes, or has just taken, so many times the 95th percentile of its schedule."""
    scopes = Scopes(rules)
    found = [
        (run, seconds, rule)
        for run, seconds in _times(rules, look)
        if run.scheduler_id is not None and seconds > SLOW_SECONDS
        for rule in scopes.of(run.scheduler_id, run.group_id)
    ]
    durations = look.durations_of(run.scheduler_id for run, _seconds, _rule in found if run.scheduler_id is not None)
    for run, seconds, rule in found:
        known = durations.get(run.scheduler_id or 0)
        if known is None:
            yield from look.alert_that_stays(rule, _key(run))
            continue
        usual = known.p95 if known is not None else None
        if usual is not None and seconds > rule.number * usual and seconds > usual + SLOW_SECONDS:
            yield rule, _situation(run, seconds, usual)


def _times(rules: Sequence[Wanted], look: Look) -> list[tuple[Run, float]]:
    """The runs that run or have just ended, with their durations so far."""
    found = {run.pk: run for run in look.running}
    named = {rule.schedule for rule in rules if rule.schedule is not None}
    for runs in look.runs_of(named).values():
        found |= {run.pk: run for run in runs if run.state == State.RUNNING.value}
    times = [
        (run, max(0.0, (look.now - run.started_at).total_seconds()))
        for run in found.values()
        if run.started_at is not None
    ]
    return times + [(one.run, one.seconds) for one in look.ended if one.run.pk not in found]


def _key(run: Run) -> str:
    return f"execution {run.pk}"


def _situation(run: Run, seconds: float, usual: float) -> Situation:
    running = run.state == State.RUNNING.value
    text = _("It has been running for %(time)s.") if running else _("It took %(time)s.")
    seen = text % {"time": format_span(seconds)}
    limit = _("95 of 100 runs of its schedule take at most %(usual)s.") % {"usual": format_span(usual)}
    return Situation(
        _key(run),
        _("execution %(number)d of %(name)s") % {"number": run.pk, "name": run.target_name},
        f"{seen} {limit}",
        _("Read its output. Cancel it if it hangs.") if running else _("Read its output."),
        schedule=run.scheduler_id,
        execution=run.pk,
        group=run.group_id,
    )
