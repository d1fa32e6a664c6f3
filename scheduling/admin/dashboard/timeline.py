"""Timeline: what falls due in the next 60 minutes, a dot for each run."""

from __future__ import annotations

import heapq
from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin import svg
from scheduling.admin.dashboard.viewer import Viewer
from scheduling.admin.parts import relative, shown
from scheduling.core.cron import CronError, ZoneError, next_after, parse
from scheduling.models import Scheduler
from scheduling.models.scheduler import TARGETS

SPAN = timedelta(minutes=60)
MOST = 200
"""Dots; so many occurrences are computed, however many schedules there are."""
SOONEST = 6

WIDTH, LEFT, RIGHT, STEP, RADIUS, STACK = 620, 12, 12, 8, 3.4, 14


@dataclass(frozen=True)
class Run:
    """One occurrence to come."""

    instant: datetime
    scheduler: Scheduler


def timeline(viewer: Viewer) -> dict[str, Any]:
    """The picture, and the next few in words, with a countdown."""
    runs, more = upcoming_runs(viewer.now)
    soonest = [
        {"name": shown(run.scheduler, 60), "address": viewer.scheduler(run.scheduler.pk), "run": run,
         "in": relative(run.instant, viewer.now), "at": run.instant.astimezone(viewer.zone)}
        for run in _first_of_each(runs)
    ]  # fmt: skip
    return {
        "picture": _draw(runs, viewer) if runs else "",
        "soonest": soonest,
        "zone": viewer.zone,
        "most": MOST if more else 0,
    }


def _first_of_each(runs: list[Run]) -> list[Run]:
    """Six schedules, not six minutes of the one that runs each minute."""
    first: dict[int, Run] = {}
    for run in runs:
        first.setdefault(run.scheduler.pk, run)
    return list(first.values())[:SOONEST]


def upcoming_runs(now: datetime) -> tuple[list[Run], bool]:
    """The next occurrences within the span, in order, and whether there are more than are shown.

    A heap holds the next run of each schedule; taking the first puts the schedule's following one in. So
    the work is the number of dots, not of schedules times minutes.
    """
    until = now + SPAN
    rows = list(
        Scheduler.objects.filter(status=True, next_run_at__isnull=False, next_run_at__lte=until)
        .order_by("next_run_at", "pk")
        .prefetch_related(*TARGETS)[: MOST + 1]
    )
    heap = [(row.next_run_at, number) for number, row in enumerate(rows) if row.next_run_at is not None]
    heapq.heapify(heap)
    runs: list[Run] = []
    while heap and len(runs) < MOST:
        instant, number = heap[0]
        # What is overdue is claimed as soon as there is somebody to do it: it stands at the beginning.
        runs.append(Run(max(instant, now), rows[number]))
        following = _following(rows[number], max(instant, now))
        if following is not None and following <= until:
            heapq.heapreplace(heap, (following, number))
        else:
            heapq.heappop(heap)
    return runs, bool(heap)


def _following(row: Scheduler, after: datetime) -> datetime | None:
    if row.date_time is not None:
        return None
    try:
        return next_after(parse(row.schedule), row.zone_name, after)
    except (CronError, ZoneError):
        return None  # only plain SQL can bring a row there, and the next sweep says so


def _draw(runs: list[Run], viewer: Viewer) -> SafeString:
    stacks: Counter[int] = Counter()
    dots, highest = list[tuple[float, int, Run]](), 1
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
    label = ngettext(
        "%(count)d run in the next 60 minutes", "%(count)d runs in the next 60 minutes", len(runs)
    ) % {"count": len(runs)}  # fmt: skip
    return svg.picture(WIDTH, base + 18, label, shapes, css="dash-timeline", linked=True)


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


def _dot(x: float, y: float, run: Run, viewer: Viewer) -> SafeString:
    label = _("%(time)s %(name)s") % {
        "time": f"{run.instant.astimezone(viewer.zone):%H:%M}",
        "name": shown(run.scheduler, 80),
    }
    # Two hundred stops of the tab key would be in the way: the same schedules are links below, and in the table.
    return svg.link(viewer.scheduler(run.scheduler.pk), label, svg.circle(x, y, RADIUS, "dash-dot"), skipped=True)
