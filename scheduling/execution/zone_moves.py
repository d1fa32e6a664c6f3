"""Writes the planned runs that new zone data moves, and finds those whose start moves although their instant does not.

The start of an occurrence depends on more than its own instant: a calendar may have a zone of its own, and the offset
of a spread occurrence may depend on the next one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple

from django.db.models import F, QuerySet

from scheduling.core.cron import CronError, ZoneError
from scheduling.core.planned import wake_at
from scheduling.execution.planning import set_aside
from scheduling.logs import get_logger
from scheduling.models import MovedRun, Scheduler, ZoneData
from scheduling.models.exclusions import exclusions_of
from scheduling.models.own_timing import IS_PLAIN, assigned_of, has_own_timing
from scheduling.processes.database import locking

log = get_logger(__name__)

MOST_LOGGED = 20


class Move(NamedTuple):
    """What new zone data changes about the plan of a schedule.

    Args:
        schedule: its primary key.
        run: what is listed; None if the schedule has no next run any longer.
        start: its `next_run_at` as it was read.
        nominal: the first instant that is not on record.
    """

    schedule: int
    run: MovedRun | None
    start: datetime
    nominal: datetime


def moved_starts(some: QuerySet[Scheduler], row: ZoneData, now: datetime) -> Iterator[Move]:
    """The schedules with rules of their own whose next start is another one with the present zone data."""
    found = list(some.exclude(IS_PLAIN))
    calendars = exclusions_of(found)
    for schedule in found:
        start, calendar = schedule.next_run_at, calendars.get(schedule.pk)
        nominal = schedule.next_nominal_at or start
        if start is None or nominal is None:
            continue
        if calendar is not None and calendar.version != schedule.planned_calendar_version:
            continue  # the calendar was changed, and the sweep plans the schedule anew
        try:
            moved, _nominal = wake_at(assigned_of(schedule, calendar), nominal)
        except (CronError, ZoneError) as error:
            set_aside(schedule.pk, error, now)
            continue
        if moved == start:
            continue
        own = {"old_at": start, "moved_at": now, "timezone": schedule.zone_name, "group_id": schedule.group_id}
        run = MovedRun(zone_data=row, scheduler=schedule, new_at=moved, **own) if moved is not None else None
        yield Move(schedule.pk, run, start, nominal)


def store(wanted: Sequence[Move], row: ZoneData) -> None:
    """Change the plans that are still as they were read. A producer that claims one meanwhile comes first."""
    if not wanted:
        return
    locked = locking(Scheduler.objects.filter(pk__in=[one.schedule for one in wanted]).order_by("pk"))
    present = {schedule.pk: schedule for schedule in locked}
    done: list[MovedRun] = []
    for one in wanted:
        schedule = present.get(one.schedule)
        if schedule is None or schedule.next_run_at != one.start:
            continue
        Scheduler.objects.filter(pk=schedule.pk).update(**_columns(schedule, one.nominal))
        if one.run is not None:
            done.append(one.run)
    MovedRun.objects.bulk_create(done, batch_size=500)
    ZoneData.objects.filter(pk=row.pk).update(moved=F("moved") + len(done))
    for run in done[:MOST_LOGGED]:
        log.info("The next run moves from %s to %s", run.old_at, run.new_at, extra={"scheduler_id": run.scheduler_id})


def _columns(schedule: Scheduler, nominal: datetime) -> dict[str, datetime | None]:
    """The plan of a schedule whose first occurrence that is not on record has this nominal instant now."""
    if not has_own_timing(schedule):
        return {"next_run_at": nominal}
    next_run_at, next_nominal_at = wake_at(schedule.assigned(), nominal)
    return {"next_run_at": next_run_at, "next_nominal_at": next_nominal_at}
