"""Tells what a schedule will catch up, before it does: after a time without a producer, and after a pause."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.conf import get_conf
from scheduling.core.cron import CronError, ZoneError
from scheduling.core.occurrences import Due, Missed, Plan, plan_cron, plan_date
from scheduling.core.planned import plan
from scheduling.core.skip_reasons import SWITCHED_OFF
from scheduling.execution.pauses import left_out_of
from scheduling.execution.rule_pauses import runs_left
from scheduling.execution.start_deadlines import expired_columns
from scheduling.models import Scheduler
from scheduling.models.own_timing import has_own_timing
from scheduling.models.timetable import timetable_of
from scheduling.operations.schedule_words import zone_of
from scheduling.operations.times import format_minute


class CatchUp(NamedTuple):
    """How many occurrences run, and how many are recorded as skipped."""

    runs: int
    skipped: int


def plan_of(row: Scheduler, now: datetime) -> Plan | None:
    """What a producer would do with the schedule now; None if nothing of it is due.

    A run of the schedule that is not over may still keep it from that (`policies.overlap`).

    Raises:
        CronError, ZoneError: its times cannot be used.
    """
    first = row.next_nominal_at or row.next_run_at
    if not row.status or first is None or row.next_run_at is None or row.next_run_at > now:
        return None
    catch_up = timedelta(seconds=get_conf().catch_up_seconds)
    if row.date_time not in (None, first):
        return None  # an edit has replaced an expression by a date, and the last occurrence still runs
    if has_own_timing(row):
        return _bounded(row, plan(row.assigned().since_edit(first, row.planned_at), first, now), now)
    if row.date_time is not None:
        return _bounded(row, plan_date(row.date_time, now, catch_up), now)
    times = timetable_of(row.schedule)
    return _bounded(row, plan_cron(times, row.zone_name, first, now, catch_up, row.planned_at), now)


def _bounded(row: Scheduler, found: Plan, now: datetime) -> Plan:
    """The plan without the runs that the start deadline and the number of runs do not allow. They are skipped."""
    left, runs, skips = runs_left(row), list[Due](), list[Missed]()
    for due in found.runs:
        why = expired_columns(row, due.assigned or due.instant, now)
        if why is None and left is not None and len(runs) >= left:
            why = {"reason": SWITCHED_OFF}
        if why is None:
            runs.append(due)
        else:
            skips.append(Missed(due.instant, due.instant, 1, due.key, why["reason"]))
    return replace(found, run=runs[-1] if runs else None, earlier=tuple(runs[:-1]), skips=(*found.skips, *skips))


def caught_up(rows: Iterable[Scheduler], now: datetime) -> CatchUp:
    """The numbers of all these schedules together. One that cannot be planned counts as nothing."""
    runs = skipped = 0
    for row in rows:
        try:
            found = plan_of(row, now)
        except (CronError, ZoneError):
            continue
        if found is not None:
            runs += len(found.runs)
            skipped += sum(missed.count for missed in found.all_missed)
    return CatchUp(runs, skipped)


def catch_up_words(row: Scheduler, now: datetime) -> list[str]:
    """What becomes of the occurrences that are due, as soon as a producer works; empty if none is, or none is known."""
    try:
        found = plan_of(row, now)
    except (CronError, ZoneError):
        return []
    if found is None:
        return []
    info, said = zone_of(row), list[str]()
    if found.runs:
        first, last = (format_minute(due.instant, info) for due in (found.runs[0], found.runs[-1]))
        text = ngettext(
            "As soon as a producer works, the run of %(last)s starts.",
            "As soon as a producer works, %(count)s runs start, those of %(first)s to %(last)s.",
            len(found.runs),
        )
        said.append(text % {"count": len(found.runs), "first": first, "last": last})
    if skipped := sum(missed.count for missed in found.all_missed):
        text = ngettext(
            "%(count)s occurrence is recorded as skipped.", "%(count)s occurrences are recorded as skipped.", skipped
        )
        said.append(text % {"count": skipped})
    return said


def resume_words(row: Scheduler, now: datetime) -> list[str]:
    """What a paused schedule has left out, and what becomes of it if the schedule is resumed now."""
    found = left_out_of(row, now)
    if found is None:
        if row.date_time is not None and row.date_time <= now:
            return [_("Its date and time has passed: choose another one first.")]
        return [_("Nothing fell due during the pause, so nothing is caught up.")]
    first, count = found
    text = ngettext(
        "%(count)s run fell due during the pause, at %(first)s. It is not caught up: it is recorded as skipped.",
        "%(count)s runs fell due during the pause, the first at %(first)s. They are not caught up: one row records "
        "them as skipped.",
        count,
    )
    return [text % {"count": count, "first": format_minute(first, zone_of(row))}]
