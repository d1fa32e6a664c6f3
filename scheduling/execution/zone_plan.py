"""Plans the schedules anew when a producer has started with newer zone data (tzdata).

The schedules are looked at in windows of their primary keys, each in a transaction with the row that keeps the place.
So the work is bounded, goes on after a crash, and one producer at a time does it. Until the first pass is over, each
turn begins with the schedules that are due soon, and comes before the claims. So nothing is claimed at its old instant.

While an alive producer has other data, it may plan a run at its old instant again. So a pass is repeated until there is
none.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F, QuerySet

from scheduling.conf import get_conf
from scheduling.core.cron import CronError, ZoneError, parse, zone
from scheduling.core.intervals import RealInterval
from scheduling.core.words import in_english
from scheduling.core.zone_data import Offsets, adopts, moved_to, offsets_of
from scheduling.core.zones import zone_names
from scheduling.execution.planning import set_aside
from scheduling.execution.zone_moves import TIMES, Move, moves_by_rules, plan_those_without, store, times_of
from scheduling.logs import get_logger
from scheduling.models import MovedRun, Process, Scheduler, ZoneData
from scheduling.models.own_timing import IS_PLAIN
from scheduling.models.plan import FIRST_INSTANT, PlanState
from scheduling.processes.database import is_away
from scheduling.processes.zone_files import own_zone_data

log = get_logger(__name__)

INFO = "zone_data"
"""The name in `Process.info` under which a producer tells which data it has."""

SOON = timedelta(minutes=10)
AGAIN = timedelta(minutes=1)
"""The time between two passes while an alive producer has other data."""


class PlanLimits:
    """How much one turn may do."""

    window = 2_000
    """One transaction looks at so many schedules."""
    soon = 10_000
    """So many schedules that are due soon are looked at first."""
    zones = 40
    """The offsets of so many zones are recorded in one turn."""
    seconds = 0.5
    """The maximum time of one turn. Due schedules wait during this time, so the limit is short."""


def adopt(now: datetime) -> bool:
    """Record the data of this process if it is the first one, or newer than all before.

    Returns:
        Whether it was recorded. Unless it is the first one, the schedules must be planned anew.
    """
    own = own_zone_data()
    known = list(ZoneData.objects.order_by("pk").values_list("version", "digest"))
    if not adopts(own.version, own.digest, known):
        return False
    first = {"passes": 1, "done_at": now} if not known else {}
    row = ZoneData(digest=own.digest, version=own.version, offsets={}, first_used_at=now, **first)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        return False  # another producer has just recorded it
    if known:
        log.warning("New zone data %s: the schedules are planned anew", row)
    return True


def turn(now: datetime) -> bool:
    """Do the next part of the work, if this process has the newest data. Returns whether more is to be done at once."""
    until = time.monotonic() + PlanLimits.seconds
    is_first = True
    while _step(now, is_first):
        is_first = False
        if time.monotonic() > until:
            return True
    return False


def _step(now: datetime, is_first: bool) -> bool:
    """One transaction. Returns whether more is to be done at once.

    Args:
        is_first: whether the turn begins with it.
    """
    newest = ZoneData.objects.order_by("-pk").values_list("pk", "digest", "done_at").first()
    if newest is None or newest[1] != own_zone_data().digest:
        return False
    pk, digest, done_at = newest
    rests = done_at is not None and (now - done_at < AGAIN or not _others(digest, done_at))
    with transaction.atomic():
        row = ZoneData.objects.filter(pk=pk).select_for_update(skip_locked=True).first()
        if row is None or row.done_at != done_at:
            return False  # another producer does it
        if rests:
            _record_offsets(row)
            return False
        former = ZoneData.objects.filter(pk__lt=pk).order_by("-pk").values_list("offsets", flat=True).first()
        offsets = former if isinstance(former, dict) else {}
        if is_first and row.passes == 0:
            _move_soon(row, offsets, now)
        return _window(row, offsets, now)


def _record_offsets(row: ZoneData) -> None:
    """Record the offsets of further zones. A zone may be used later, so all zones are recorded."""
    known = row.offsets if isinstance(row.offsets, dict) else {}
    missing = sorted(zone_names() - known.keys())[: PlanLimits.zones]
    if not missing:
        return
    for name in missing:
        try:
            known[name] = offsets_of(zone(name), row.first_used_at - timedelta(days=1))
        except ZoneError:
            known[name] = []  # its file cannot be read
    ZoneData.objects.filter(pk=row.pk).update(offsets=known)


def _others(digest: str, since: datetime) -> bool:
    """Whether a producer with other data has beaten since the last pass ended."""
    rows = Process.objects.filter(kind=Process.Kind.PRODUCER.value, heartbeat_at__gte=since)
    found = rows.order_by("-heartbeat_at").values_list("info", flat=True)[:100]
    return any(isinstance(info, dict) and info.get(INFO) not in (None, digest) for info in found)


def _window(row: ZoneData, former: Mapping[str, Offsets], now: datetime) -> bool:
    """Look at the next schedules by their ids. Returns whether some are left."""
    ids = Scheduler.objects.filter(pk__gt=row.cursor).order_by("pk").values_list("pk", flat=True)
    keys = list(ids[: PlanLimits.window])
    if keys:
        _move_each(keys, row, former, now)
    columns: dict[str, Any] = {"cursor": keys[-1] if keys else row.cursor, "done_at": None}
    is_full = len(keys) == PlanLimits.window
    if not is_full:
        columns |= {"cursor": 0, "done_at": now, "passes": F("passes") + 1}
    ZoneData.objects.filter(pk=row.pk).update(**columns)
    return is_full


def _move_each(keys: Sequence[int], row: ZoneData, former: Mapping[str, Offsets], now: datetime) -> None:
    """Move the planned runs of these schedules. If one cannot be read, the others are looked at one by one."""
    try:
        with transaction.atomic():
            _move(Scheduler.objects.filter(pk__in=keys), row, former, now)
        return
    except Exception as error:
        if is_away(error):
            raise
    for pk in keys:
        try:
            with transaction.atomic():
                _move(Scheduler.objects.filter(pk=pk), row, former, now)
        except Exception as error:
            if is_away(error):
                raise
            log.error("Schedule is not planned anew with the new zone data: %s", error, extra={"scheduler_id": pk})


def _move_soon(row: ZoneData, former: Mapping[str, Offsets], now: datetime) -> None:
    due = Scheduler.objects.filter(next_run_at__gte=FIRST_INSTANT, next_run_at__lt=now + SOON).order_by("next_run_at")
    keys = sorted(due.values_list("pk", flat=True)[: PlanLimits.soon])
    for start in range(0, len(keys), PlanLimits.window):
        _move_each(keys[start : start + PlanLimits.window], row, former, now)


@in_english()
def _move(some: QuerySet[Scheduler], row: ZoneData, former: Mapping[str, Offsets], now: datetime) -> None:
    """Move the planned runs of these schedules. A schedule that cannot be planned any longer is set aside."""
    rows = some.filter(status=True, plan_state=PlanState.CURRENT, next_run_at__gte=FIRST_INSTANT)
    fixed = rows.filter(date_time=None)
    planned = list(fixed.values_list("pk", "next_run_at", "next_nominal_at", "group_id", *TIMES))
    # What was moved before, as due soon, is planned with the present data.
    earlier = MovedRun.objects.filter(zone_data=row, scheduler__in=[pk for pk, *_columns in planned])
    done = set(earlier.values_list("scheduler", "new_at")) if row.passes == 0 else set()
    wanted: list[Move] = []
    known: dict[tuple[str, str, datetime], datetime] = {}
    for pk, start, nominal, group, *times in planned:
        at = nominal or start
        if start is None or at is None or (pk, at) in done:
            continue
        tz = times[1] or get_conf().timezone
        key = (times[0], tz, at)
        try:
            if key not in known:
                known[key] = _moved_to(*key, former, now, again=row.passes > 0)
        except (CronError, ZoneError) as error:
            set_aside(pk, error, now)
            continue
        if known[key] != at:
            own = {"old_at": at, "new_at": known[key], "moved_at": now, "timezone": tz}
            run = MovedRun(zone_data=row, scheduler_id=pk, group_id=group, **own)
            wanted.append(Move(pk, run, start, known[key], tuple(times)))
    ruled = {schedule.pk: schedule for schedule in rows.exclude(IS_PLAIN)}
    plain = [one for one in wanted if one.schedule not in ruled]
    moved = {one.schedule: one.nominal for one in wanted if one.nominal is not None and _is_as_read(one, ruled)}
    store([*plain, *moves_by_rules(ruled.values(), moved, row, now)], row)
    plan_those_without(some, now)


def _is_as_read(one: Move, ruled: Mapping[int, Scheduler]) -> bool:
    """Whether a schedule with rules of its own has still had the times by which its move was found."""
    return one.schedule in ruled and times_of(ruled[one.schedule]) == one.times


def _moved_to(
    schedule: str, tz: str, at: datetime, former: Mapping[str, Offsets], now: datetime, *, again: bool
) -> datetime:
    offsets = former.get(tz)
    times = parse(schedule)
    if not offsets or isinstance(times, RealInterval):
        return at  # no zone concerns an interval that is counted in real time
    return moved_to(times, tz, at, offsets, now, again=again)


def told() -> dict[str, str]:
    """What a producer tells of its data with each heartbeat."""
    return {INFO: own_zone_data().digest}
