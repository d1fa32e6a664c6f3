"""Writes the planned runs that new zone data moves, and decides about those of schedules with rules of their own.

The start of an occurrence depends on more than its own instant: a calendar may have a zone of its own, and the offset
of a spread occurrence may depend on the next one. And the bounds of a schedule are instants, which do not move.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import F, QuerySet

from scheduling.core.cron import CronError, ZoneError
from scheduling.core.nominal import NominalTimes
from scheduling.core.planned import wake_at
from scheduling.execution.planning import set_aside
from scheduling.logs import get_logger
from scheduling.models import MovedRun, Scheduler, ZoneData
from scheduling.models.exclusions import exclusions_of
from scheduling.models.own_timing import assigned_of, has_own_timing
from scheduling.models.plan import PlanState
from scheduling.processes.database import locking

log = get_logger(__name__)

MOST_LOGGED = 20


class Move(NamedTuple):
    """What new zone data changes about the plan of a schedule.

    Args:
        schedule: its primary key.
        run: what is listed; None if the schedule has no next run any longer.
        start: its `next_run_at` as it was read.
        nominal: the first instant that is not on record; None if there is none any longer.
        times: its times as they were read (`times_of`).
    """

    schedule: int
    run: MovedRun | None
    start: datetime
    nominal: datetime | None
    times: tuple[Any, ...]


TIMES = ("schedule", "timezone", "active_from", "active_until")
"""The columns that say at which instants a schedule is due. An edit may change them and keep the next run."""


def times_of(schedule: Scheduler) -> tuple[Any, ...]:
    """The columns `TIMES` of a schedule."""
    return tuple(getattr(schedule, name) for name in TIMES)


def moves_by_rules(
    some: Collection[Scheduler], moved: Mapping[int, datetime], row: ZoneData, now: datetime
) -> Iterator[Move]:
    """What changes about schedules with rules of their own.

    Args:
        moved: the instants to which their first occurrences that are not on record move, without their rules, by their
            primary keys. A schedule whose occurrence stays is missing.
    """
    calendars = exclusions_of(some)
    for schedule in some:
        start, calendar = schedule.next_run_at, calendars.get(schedule.pk)
        old = schedule.next_nominal_at or start
        if start is None or old is None:
            continue
        if calendar is not None and calendar.version != schedule.planned_calendar_version and schedule.pk not in moved:
            continue  # the calendar was changed, and the sweep plans the schedule anew
        try:
            own = assigned_of(schedule, calendar)
            nominal = _within(own.times, moved[schedule.pk]) if schedule.pk in moved else old
            new_start = None if nominal is None else wake_at(own, nominal)[0]
        except (CronError, ZoneError) as error:
            set_aside(schedule.pk, error, now)
            continue
        if (nominal, new_start) == (old, start):
            continue
        old_at, new_at = (start, new_start) if nominal == old else (old, nominal)
        facts = {"moved_at": now, "timezone": schedule.zone_name, "group_id": schedule.group_id}
        run = None
        if new_at is not None and new_start is not None:
            run = MovedRun(zone_data=row, scheduler=schedule, old_at=old_at, new_at=new_at, **facts)
        yield Move(schedule.pk, run, start, nominal, times_of(schedule))


def _within(times: NominalTimes, nominal: datetime) -> datetime | None:
    """The instant, or the first one that follows it, within the bounds of the schedule."""
    if times.since is not None and nominal < times.since:
        return times.after(nominal)
    return nominal if times.until is None or nominal <= times.until else None


def store(wanted: Sequence[Move], row: ZoneData) -> None:
    """Change the plans that are still as they were read. A producer that claims one meanwhile comes first, and so does
    a user who edits one."""
    if not wanted:
        return
    locked = locking(Scheduler.objects.filter(pk__in=[one.schedule for one in wanted]).order_by("pk"))
    present = {schedule.pk: schedule for schedule in locked}
    done: list[MovedRun] = []
    for one in wanted:
        schedule = present.get(one.schedule)
        if schedule is None or schedule.next_run_at != one.start or times_of(schedule) != one.times:
            continue
        Scheduler.objects.filter(pk=schedule.pk).update(**_columns(schedule, one.nominal))
        if one.run is not None:
            done.append(one.run)
    MovedRun.objects.bulk_create(done, batch_size=500)
    ZoneData.objects.filter(pk=row.pk).update(moved=F("moved") + len(done))
    for run in done[:MOST_LOGGED]:
        log.info("The next run moves from %s to %s", run.old_at, run.new_at, extra={"scheduler_id": run.scheduler_id})


def plan_those_without(some: QuerySet[Scheduler], now: datetime) -> None:
    """Plan those of the schedules that had no run left, and have one by the new data.

    The bounds of a schedule are instants. By the new data, one of its local times may lie between them that lay outside
    before. Only its runs after `now` count: by the former data, nothing was due before.
    """
    rows = some.filter(plan_state=PlanState.WITHOUT_NEXT_RUN, status=True, date_time=None)
    for schedule in rows.exclude(active_until__lte=now).order_by("pk"):
        times = times_of(schedule)
        try:
            schedule.plan(now)
        except (CronError, ZoneError) as error:
            set_aside(schedule.pk, error, now)
            continue
        if schedule.next_run_at is None:
            continue
        same = dict(zip(TIMES, times, strict=True))
        planned = {"next_run_at": schedule.next_run_at, "next_nominal_at": schedule.next_nominal_at}
        if Scheduler.objects.filter(pk=schedule.pk, status=True, next_run_at=None, **same).update(**planned):
            log.info("The next run is now %s", schedule.next_run_at, extra={"scheduler_id": schedule.pk})


def _columns(schedule: Scheduler, nominal: datetime | None) -> dict[str, datetime | None]:
    """The plan of a schedule whose first occurrence that is not on record has this nominal instant now."""
    if not has_own_timing(schedule):
        return {"next_run_at": nominal}
    next_run_at, next_nominal_at = (None, None) if nominal is None else wake_at(schedule.assigned(), nominal)
    return {"next_run_at": next_run_at, "next_nominal_at": next_nominal_at}
