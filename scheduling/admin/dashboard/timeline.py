"""The timeline: one dot for each run that falls due in the next 60 minutes."""

from __future__ import annotations

import heapq
from collections import Counter
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.utils import timezone as clock
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.common.viewer import Viewer
from scheduling.admin.ui import svg
from scheduling.admin.ui.times import relative_time
from scheduling.core.cron import CronError, ZoneError, next_after
from scheduling.core.expected import next_start
from scheduling.core.text import visible_text
from scheduling.models import Scheduler
from scheduling.models.own_timing import has_own_timing
from scheduling.models.scheduler import load_names
from scheduling.models.timetable import timetable_of
from scheduling.models.visibility import Visibility

SPAN = timedelta(minutes=60)
SHOWN_DOTS = 200
"""At most this many occurrences are computed and drawn. The limit keeps the page fast with any number of schedules."""
SEARCHED = 2_000
"""At most this many schedules are searched for the occurrences of a later hour: those that fall due first."""
SOONEST = 6

WIDTH, LEFT, RIGHT, STEP, RADIUS, STACK = 620, 12, 12, 8, 3.4, 14


class UpcomingRun(NamedTuple):
    """A future occurrence of a schedule."""

    instant: datetime
    scheduler: Scheduler


def timeline(viewer: Viewer) -> dict[str, Any]:
    """The template context: the picture, and the next few runs in words, each run with a countdown."""
    runs, more = upcoming_runs(viewer.visible, viewer.now)
    soonest = [
        {"name": visible_text(run.scheduler, 60), "address": viewer.scheduler(run.scheduler.pk), "run": run,
         "in": relative_time(run.instant, viewer.now), "at": run.instant.astimezone(viewer.zone)}
        for run in _first_of_each(runs)
    ]  # fmt: skip
    picture, most = _draw(runs, viewer) if runs else "", SHOWN_DOTS if more else 0
    return {"picture": picture, "soonest": soonest, "zone": viewer.zone, "most": most}


def _first_of_each(runs: list[UpcomingRun]) -> list[UpcomingRun]:
    """The next runs, at most `SOONEST`, with one run for each schedule.

    If a schedule could be listed twice, a schedule that runs every minute would fill the list.
    """
    first: dict[int, UpcomingRun] = {}
    for run in runs:
        first.setdefault(run.scheduler.pk, run)
    return list(first.values())[:SOONEST]


def upcoming_runs(
    visible: Visibility, now: datetime, start: datetime | None = None, until: datetime | None = None
) -> tuple[list[UpcomingRun], bool]:
    """The first occurrences that fall due in [start, until], at most `SHOWN_DOTS`, ordered by time.

    The bool says whether more occurrences fall due in this period.

    A heap contains the next run of each schedule. When a run is taken from the heap, the schedule's following run
    replaces it. So the cost depends on the number of dots and of schedules, not on the number of runs.

    Args:
        visible: the schedules that the user sees.
        start: None means now. An overdue run is shown at the beginning, because it will be claimed as soon as a
            producer is alive.
        until: None means 60 minutes after the start.
    """
    begin = start or now
    until = until or begin + SPAN
    due = visible.schedules().filter(status=True, next_run_at__lte=until).order_by("next_run_at", "pk")
    rows = list(due[: SHOWN_DOTS + 1 if start is None else SEARCHED])
    load_names(rows)
    heap = [(first, number) for number, row in enumerate(rows) if (first := _first(row, begin)) and first <= until]
    heapq.heapify(heap)
    runs: list[UpcomingRun] = []
    while heap and len(runs) < SHOWN_DOTS:
        instant, number = heap[0]
        runs.append(UpcomingRun(max(instant, begin), rows[number]))
        following = _following(rows[number], max(instant, begin))
        if following is not None and following <= until:
            heapq.heapreplace(heap, (following, number))
        else:
            heapq.heappop(heap)
    return runs, bool(heap)


def _first(row: Scheduler, start: datetime) -> datetime | None:
    """The schedule's first occurrence that is still to come at `start`."""
    if row.next_run_at is None or row.next_run_at >= start or row.date_time is not None:
        return row.next_run_at
    return _following(row, start - timedelta(microseconds=1)) if start > clock.now() else row.next_run_at


def _following(row: Scheduler, after: datetime) -> datetime | None:
    try:
        if has_own_timing(row):
            return next_start(row.assigned(), after)
        if row.date_time is not None:
            return None
        return next_after(timetable_of(row.schedule), row.zone_name, after)
    except (CronError, ZoneError):
        return None  # only plain SQL can write an invalid row


def _draw(runs: list[UpcomingRun], viewer: Viewer) -> SafeString:
    stacks: Counter[int] = Counter()
    dots, highest = list[tuple[float, int, UpcomingRun]](), 1
    scale = (WIDTH - LEFT - RIGHT) / SPAN.total_seconds()
    for run in runs:
        seconds = (run.instant - viewer.now).total_seconds()
        column = int(seconds * scale // STEP)
        stacks[column] += 1
        highest = max(highest, min(stacks[column], STACK))
        dots.append((round(LEFT + seconds * scale, 1), stacks[column], run))
    base = 10 + highest * STEP
    shapes = _axis(base, viewer, scale)
    shapes += [_dot(x, base - 6 - (level - 1) * STEP, run, viewer) for x, level, run in dots if level <= STACK]
    for column, number in stacks.items():
        if number > STACK:
            shapes.append(svg.text(LEFT + column * STEP, 8, f"+{number - STACK}"))
    label = ngettext("%(count)d run in the next 60 minutes", "%(count)d runs in the next 60 minutes", len(runs))
    return svg.picture(WIDTH, base + 18, label % {"count": len(runs)}, shapes, css="dash-timeline", linked=True)


def _axis(base: int, viewer: Viewer, scale: float) -> list[SafeString]:
    shapes = [svg.path(f"M{LEFT} {base}H{WIDTH - RIGHT}", "dash-axis")]
    minute = viewer.now.replace(second=0, microsecond=0) + timedelta(minutes=1)
    while minute <= viewer.now + SPAN:
        local = minute.astimezone(viewer.zone)
        if local.minute % 10 == 0:
            x = round(LEFT + (minute - viewer.now).total_seconds() * scale, 1)
            shapes.append(svg.path(f"M{x} {base}v4", "dash-axis"))
            shapes.append(svg.text(x, base + 15, f"{local:%H:%M}", anchor="middle"))
        minute += timedelta(minutes=1)
    return shapes


def _dot(x: float, y: float, run: UpcomingRun, viewer: Viewer) -> SafeString:
    time = f"{run.instant.astimezone(viewer.zone):%H:%M}"
    label = _("%(time)s %(name)s") % {"time": time, "name": visible_text(run.scheduler, 80)}
    # The Tab key skips the dots, because two hundred tab stops would slow down keyboard users. The links below the
    # picture and in the table of schedules lead to the same pages.
    return svg.link(viewer.scheduler(run.scheduler.pk), label, svg.circle(x, y, RADIUS, "dash-dot"), skipped=True)
