"""What the preview of a schedule says before, as the rows that a simulated clock must then make."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from scheduling.core import skip_reasons
from scheduling.core.expected import MOST_NOT_RUN, Expected, Fate
from scheduling.core.occurrences import Plan, cron_key, date_key
from scheduling.core.zones import zone
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.own_timing import has_own_timing
from scheduling.operations.catch_up import plan_of
from scheduling.operations.next_runs import MOST, next_expected, next_runs

_LAST_HELD = re.compile(r"^(Held .* to )[-0-9]+ [:0-9]+ \S+(?=: )")
"""The preview does not tell which one of those that are held together is the last but one."""


class Row(NamedTuple):
    """One execution.

    Args:
        assigned: when a run was to start, if this is not its nominal instant.
        at: when it started, or was recorded as skipped; None: whenever.
        count: how many occurrences a skipped row counts; 0 for a run.
        reason: why they were skipped.
    """

    key: str
    nominal: datetime
    assigned: datetime | None
    at: datetime | None
    count: int
    reason: str


@dataclass
class Foretold:
    """What was said of one schedule.

    Args:
        rows: those that must be made.
        reaches: up to here it was said; None: for ever.
        trailing: what may be made without a run after it: the last occurrences, which a calendar excludes, and one that
            is due when the last run pauses the schedule.
    """

    rows: list[Row] = field(default_factory=list)
    reaches: datetime | None = None
    trailing: list[Row] = field(default_factory=list)


def foretell(schedule: Scheduler, now: datetime) -> Foretold:
    """Ask the preview, and what is told of missed occurrences."""
    schedule.refresh_from_db()
    if not schedule.status:
        return Foretold()
    key = date_key if schedule.date_time is not None else cron_key
    late = plan_of(schedule, now)
    rows = [] if late is None else _caught_up(late, now)
    if not has_own_timing(schedule):
        runs = next_runs(schedule, MOST, now)
        rows += [Row(key(run), run, None, run, 0, "") for run in runs]
        return Foretold(rows, runs[-1] if len(runs) == MOST else None)
    told = next_expected(schedule, MOST, now)
    starts = sum(one.starts_at is not None for one in told)
    if late is not None:
        runs = late.runs[:MOST]
        shown = [(one.first, one.starts_at) for one in told[: len(runs)]]
        assert shown == [(due.instant, due.assigned or due.instant) for due in runs]
        told = told[len(runs) :]
    found = _Rows(schedule)
    for place, one in enumerate(told):
        found.add(one, told[place + 1].first if place + 1 < len(told) else None)
    reaches = None
    if starts >= MOST or found.not_run >= MOST_NOT_RUN:
        reaches = max((row.at for row in found.made if row.at is not None), default=now)
    return Foretold(rows + found.made, reaches, [*found.take(None), *_after_the_last_run(schedule, rows + found.made)])


def _after_the_last_run(schedule: Scheduler, made: list[Row]) -> list[Row]:
    """What may be due and wait for its start when the last run of a schedule pauses it."""
    own = schedule.assigned()
    # If several are due at once, those after the last run are recorded one by one.
    known = [row for row in made if row.reason in ("", skip_reasons.SWITCHED_OFF) and row.at is not None]
    if schedule.max_runs is None or own is None or not known:
        return []
    last = max(known, key=lambda row: row.nominal)
    first = own.times.after(last.nominal)
    if first is None or last.at is None or first > last.at:
        return []
    return [Row(cron_key(first), first, None, None, 0, skip_reasons.SWITCHED_OFF)]


def _caught_up(late: Plan, now: datetime) -> list[Row]:
    """What is told of occurrences that are due already."""
    rows = [Row(one.key, one.first, None, now, one.count, _shortened(one.reason)) for one in late.all_missed]
    for due in late.runs:
        assigned = due.assigned if due.assigned != due.instant else None
        rows.append(Row(due.key, due.instant, assigned, now, 0, ""))
    return rows


class _Rows:
    """Makes the rows of what is told. Occurrences that do not run are put on record with the next run."""

    def __init__(self, schedule: Scheduler) -> None:
        self._key = date_key if schedule.date_time is not None else cron_key
        self._info = zone(schedule.zone_name)
        self._excluded = dict[str, tuple[datetime, datetime, int]]()
        self._held = list[tuple[Expected, int, datetime]]()
        self.made = list[Row]()
        self.not_run = 0
        """How many stretches in a row do not run."""

    def add(self, one: Expected, following: datetime | None) -> None:
        self.not_run += 1
        if one.last is None:
            return  # it goes on for ever, so it is never put on record
        if one.fate is Fate.EXCLUDED:
            first, _last, count = self._excluded.get(one.why, (one.first, one.last, 0))
            self._excluded[one.why] = first, one.last, count + one.count
            return
        nominal = one.last if one.fate is Fate.HELD else one.first
        if one.fate is Fate.HELD and (others := one.count - (one.starts_at is not None)):
            runs = nominal if one.starts_at is not None else following
            assert runs is not None
            self._held.append((one, others, runs))
        if one.starts_at is not None:
            self.not_run = 0
            self.made += self.take(one.starts_at)
            assigned = one.starts_at if one.starts_at != nominal else None
            self.made.append(Row(self._key(nominal), nominal, assigned, one.starts_at, 0, ""))

    def take(self, at: datetime | None) -> list[Row]:
        """The rows of those that did not run so far."""
        found = []
        for why, (first, last, count) in self._excluded.items():
            reason = skip_reasons.excluded(first, last, count, why, self._info)
            found.append(Row(self._key(first), first, None, at, count, reason))
        for one, others, runs in self._held:
            instead = skip_reasons.later_ran(runs, self._info)
            reason = skip_reasons.held(one.first, one.first, others, one.why, self._info, instead)
            found.append(Row(self._key(one.first), one.first, None, at, others, _shortened(reason)))
        self._excluded.clear()
        self._held.clear()
        return found


def _shortened(reason: str) -> str:
    return _LAST_HELD.sub(r"\1…", reason)


def made_since(schedules: Sequence[Scheduler], last: int) -> dict[int, list[Row]]:
    """The executions that are newer than the one with this primary key, by the schedule. Each run has succeeded."""
    found: dict[int, list[Row]] = {schedule.pk: [] for schedule in schedules}
    for row in SchedulerExecution.objects.filter(scheduler__in=found, pk__gt=last).order_by("pk"):
        assert row.scheduler_id is not None
        assert row.state in ("succeeded", "skipped"), row.reason
        skipped = row.state == "skipped"
        assigned, at = (None, row.executed_at) if skipped else (row.assigned_at, row.started_at)
        own = Row(row.execution_key, row.scheduled_at, assigned, at, row.missed, _shortened(row.reason))
        found[row.scheduler_id].append(own)
    return found
