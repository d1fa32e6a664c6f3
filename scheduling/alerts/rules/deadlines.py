"""Finds schedules that will not be finished by a time of the day."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from django.utils.translation import gettext as _

from scheduling.alerts.look import Look
from scheduling.alerts.runs import Run
from scheduling.alerts.schedules import Schedule
from scheduling.alerts.wanted import RuleProblem, Wanted
from scheduling.core.alerts import Situation
from scheduling.core.cron import CronError, ZoneError, zone
from scheduling.core.deadlines import (
    Deadline,
    Deadlines,
    deadlines,
    expected_seconds,
    time_of_day,
    usual_is_known,
    will_be_late,
)
from scheduling.core.lifecycle import CANCELLED_AT_ONCE, OCCURRENCES, State
from scheduling.core.skip_reasons import is_on_purpose
from scheduling.models.time_words import format_span
from scheduling.models.timetable import timetable_of

REMEMBERED = timedelta(days=2)


class Progress(NamedTuple):
    """How far the work of an occurrence is.

    Args:
        over: whether nothing is to be told: it is finished, was left out on purpose, or was cancelled.
        run: the execution that does it; None if there is none.
        started_at: when its present attempt has started.
        may_start_at: when its next attempt may start.
    """

    over: bool
    may_start_at: datetime
    run: Run | None = None
    started_at: datetime | None = None


def not_finished(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """The last occurrence before the deadline is not finished, and will not be finished in time.

    Raises:
        RuleProblem: the time of the day or the times of a schedule cannot be read.
    """
    named = {rule.schedule for rule in rules if rule.schedule is not None}
    schedules = look.schedules(named)
    wanted = [(rule, schedule) for rule in rules if (schedule := schedules.get(rule.schedule or 0)) is not None]
    durations = look.durations_of(schedule.pk for _rule, schedule in wanted if schedule.active)
    told = [
        (rule, schedule, deadline)
        for rule, schedule in wanted
        if schedule.active and rule.covers(schedule.pk, schedule.group)
        for deadline in _deadlines(rule, schedule, look)
    ]
    runs = _runs([(schedule.pk, deadline.occurrence) for _rule, schedule, deadline in told], look)
    for rule, schedule, deadline in told:
        yield from _told(rule, schedule, deadline, runs[schedule.pk], durations.get(schedule.pk), look)


def _runs(occurrences: Sequence[tuple[int, datetime]], look: Look) -> dict[int, Sequence[Run]]:
    """The newest runs of the schedules, and earlier ones where these do not reach back to the occurrences."""
    found: dict[int, Sequence[Run]] = dict(look.runs_of({pk for pk, _occurrence in occurrences}))
    earliest: dict[int, datetime] = {}
    for pk, occurrence in occurrences:
        if not _reaches_back(found[pk], occurrence, look.runs_each):
            earliest[pk] = min(occurrence, earliest.get(pk, occurrence))
    for pk, further in look.further_runs.since(earliest).items() if earliest else ():
        both = {run.pk: run for run in (*further, *found[pk])}
        found[pk] = [both[key] for key in sorted(both)]
    return found


def _reaches_back(runs: Sequence[Run], occurrence: datetime, most: int) -> bool:
    """Whether the newest runs of a schedule say what has become of an occurrence.

    A backfill or many runs by hand may have come after the run of the occurrence.
    """
    if len(runs) < most:
        return True  # it has no further ones
    return any(
        run.state == State.SUCCEEDED.value
        if run.scheduled_at >= occurrence
        else run.trigger in OCCURRENCES and run.state != State.SKIPPED.value
        for run in runs
        if run.scheduled_at is not None
    )


def _deadlines(rule: Wanted, schedule: Schedule, look: Look) -> list[Deadline]:
    try:
        at = time_of_day(rule.at)
        key = ("deadlines", schedule.cron, schedule.date_time, schedule.zone, at)
        own = schedule.assigned()
        # A calendar may be edited at any time, so what follows from it is not remembered.
        known: Deadlines | None = look.memory.known(key, look.now, REMEMBERED) if own is None else None
        if known is None or not known.holds(look.now):
            timetable = timetable_of(schedule.cron) if schedule.cron else None
            known = deadlines(timetable, schedule.date_time, schedule.zone, at, look.now, own)
            if own is None:
                look.memory.keep(key, look.now, known)
    except (CronError, ZoneError, ValueError, OverflowError) as error:
        raise RuleProblem(str(error)) from error
    # The schedule did not have its present times before.
    return [one for one in known.due(look.now) if (schedule.planned_at or one.occurrence) <= one.occurrence]


def _told(
    rule: Wanted,
    schedule: Schedule,
    deadline: Deadline,
    runs: Sequence[Run],
    durations: Sequence[float] | None,
    look: Look,
) -> Iterator[tuple[Wanted, Situation]]:
    """
    Args:
        durations: those of its last successful runs; None if they are read in a later evaluation.
    """
    key, progress = f"deadline {deadline.day} {rule.at}", _progress(deadline.occurrence, runs, look)
    if progress.over:
        return
    has_failed = progress.run is not None and progress.run.state == State.FAILED.value
    if not has_failed and durations is None and look.now < deadline.instant:
        yield from look.alert_that_stays(rule, key)
        return
    durations, times = durations or (), (progress.started_at, progress.may_start_at)
    if not has_failed and not will_be_late(deadline.instant, look.now, durations, *times):
        return
    local = deadline.instant.astimezone(zone(schedule.zone))
    facts = {"time": f"{local:%H:%M}", "zone": local.tzname() or schedule.zone}
    if look.now >= deadline.instant:
        seen = _("It was to be finished by %(time)s %(zone)s, and is not finished.") % facts
    elif has_failed:  # its occurrence is the last one before the deadline
        seen = _("It is to be finished by %(time)s %(zone)s, and no further run is due before.") % facts
    else:
        seen = _("It will probably not be finished by %(time)s %(zone)s.") % facts
        if usual_is_known(durations):
            usual = format_span(expected_seconds(durations))
            seen += " " + _("Nine of ten usual runs take at most %(usual)s.") % {"usual": usual}
    seen += " " + _state(progress, look.now)
    advice = _("Tell those who wait for it.")
    if has_failed:
        advice = _("Fix the cause and republish it, or tell those who wait for it.")
    run = schedule.shown(progress.run)
    yield rule, Situation(key, schedule.name, seen, advice, schedule.pk, run, schedule.group)


def _state(progress: Progress, now: datetime) -> str:
    if progress.started_at is not None:
        age = format_span((now - progress.started_at).total_seconds())
        return _("It has been running for %(time)s.") % {"time": age}
    if progress.run is None:
        return _("It has not started.")
    if progress.run.state == State.FAILED.value:
        return _("It has failed.")
    if progress.run.state == State.DISCARDED.value:
        return _("It has failed, and was discarded.")
    return _("It waits.")


def _progress(occurrence: datetime, runs: Sequence[Run], look: Look) -> Progress:
    """How far the work of an occurrence is, from the last runs of its schedule.

    Any later run that has succeeded has finished the work, too.
    """
    since = [run for run in runs if run.scheduled_at is not None and run.scheduled_at >= occurrence]
    if any(run.state == State.SUCCEEDED.value for run in since) or _left_out(occurrence, runs, look):
        return Progress(True, look.now)
    for run in since:
        if run.state == State.RUNNING.value:
            return Progress(False, look.now, run, run.started_at)
    for run in since:
        if run.state in CANCELLED_AT_ONCE:
            return Progress(False, max(look.now, run.wake_at or look.now), run)
    failed = next((run for run in since if run.state in (State.FAILED.value, State.DISCARDED.value)), None)
    cancelled = failed is None and any(run.state == State.CANCELLED.value for run in since)
    return Progress(cancelled, look.now, failed)


def _left_out(occurrence: datetime, runs: Sequence[Run], look: Look) -> bool:
    """Whether a pause, the policy of the schedule or the handler has left the occurrence out on purpose."""
    skips = [
        run
        for run in runs
        if run.state == State.SKIPPED.value
        and run.scheduled_at is not None
        and run.scheduled_at <= occurrence <= max(run.scheduled_at, run.executed_at or run.scheduled_at)
    ]
    reasons = look.reasons_of_skips(skips)
    return any(is_on_purpose(reasons.get(run.pk, "")) for run in skips)
