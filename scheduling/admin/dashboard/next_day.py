"""The part "Next 24 hours": one bar for each hour. Its height is the number of runs that fall due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from django.db.models import Case, Count, QuerySet, Value, When
from django.utils.formats import date_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.admin.common.viewer import Viewer
from scheduling.admin.stats.runs import durations, percentile
from scheduling.admin.ui import svg
from scheduling.admin.ui.links import admin_url
from scheduling.conf import get_conf
from scheduling.core.cron import CronError, ZoneError
from scheduling.core.expected import starts_per_hour
from scheduling.core.hours import counts_per_hour, hours_from
from scheduling.models import Process, Scheduler
from scheduling.models.last_runs import last_runs
from scheduling.models.own_timing import IS_PLAIN
from scheduling.models.timetable import timetable_of

COUNTED_TIMES = 10_000
"""At most this many different expressions and dates are counted."""
TIMED_SCHEDULES = 300
"""With more schedules, the expected busy minutes are left out, because each schedule's last runs are read for them."""

OWN_TIMES = 100
"""At most so many schedules with rules of their own are counted one by one."""

WIDTH, STEP, HEIGHT, LEFT = 20, 25, 60, 4


class Times(NamedTuple):
    """The columns that say when a schedule runs."""

    schedule: str
    timezone: str
    date_time: datetime | None


def next_day(viewer: Viewer) -> dict[str, Any]:
    """The template context: the picture, the same as lines of a table, and the number of slots."""
    edges = hours_from(viewer.now)
    due = viewer.visible.schedules().filter(status=True, next_run_at__lt=edges[-1]).order_by()
    # Schedules with the same times are counted together.
    flag = Case(When(IS_PLAIN, then=Value(0)), default=Value(1))
    groups = due.annotate(ruled=flag).values_list(*Times._fields, "ruled").annotate(number=Count("pk"))
    times, ruled = Counter[Times](), Counter[Times]()
    for has_rules, number, *columns in groups.values_list("ruled", "number", *Times._fields)[: COUNTED_TIMES + 1]:
        (ruled if has_rules else times)[Times(*columns)] += number
    own = _own_counts(due.exclude(IS_PLAIN).order_by("next_run_at", "pk"), edges) if ruled else {}
    if not own:
        times += ruled
    counts = {found: _counts(found, edges) for found in list(times)[:COUNTED_TIMES]}
    runs = [sum(counts[found][place] * times[found] for found in counts) for place in range(len(edges) - 1)]
    runs = [sum(numbers) for numbers in zip(runs, *own.values(), strict=True)]
    timed, busy = times.total() + len(own) <= TIMED_SCHEDULES, None
    if timed:
        rows = _with_times(due.values_list("pk", *Times._fields)[: TIMED_SCHEDULES + 1])
        known = {pk: counts[found] for pk, found in rows if found in counts} | own
        busy = _busy_minutes(known, len(runs), viewer)
    slots = sum(process.concurrency for process in viewer.present.alive if process.kind == Process.Kind.CONSUMER)
    hours = [
        _hour(start, end, number, busy[place] if busy is not None else None, slots, viewer)
        for place, ((start, end), number) in enumerate(zip(pairwise(edges), runs, strict=True))
    ]
    return {
        "picture": _draw(hours) if any(runs) else "",
        "zone": viewer.zone,
        "slots": slots,
        "total": sum(runs),
        "timed": timed,
        "timed_schedules": TIMED_SCHEDULES,
        "most": COUNTED_TIMES if len(times) > COUNTED_TIMES else 0,
    }


def _with_times(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[int, Times]]:
    for first, *columns in rows:
        yield first, Times(*columns)


def _counts(times: Times, edges: list[datetime]) -> list[int]:
    """How many runs a schedule with these times has in each hour."""
    if times.date_time is not None:
        return [int(start <= times.date_time < end) for start, end in pairwise(edges)]
    try:
        return counts_per_hour(timetable_of(times.schedule), times.timezone or get_conf().timezone, edges)
    except (CronError, ZoneError):
        return [0] * (len(edges) - 1)  # only plain SQL can write an invalid row


def _own_counts(rows: QuerySet[Scheduler], edges: list[datetime]) -> dict[int, list[int]]:
    """For each schedule with rules of its own, how many of its runs start in each hour.

    Empty if there are more than `OWN_TIMES`: then they are counted as if they had no rules.
    """
    found: dict[int, list[int]] = {}
    for row in rows[: OWN_TIMES + 1]:
        try:
            found[row.pk] = starts_per_hour(row.assigned(), edges)
        except (CronError, ZoneError):
            found[row.pk] = [0] * (len(edges) - 1)
    return found if len(found) <= OWN_TIMES else {}


def _busy_minutes(counts: dict[int, list[int]], hours: int, viewer: Viewer) -> list[float]:
    """The sum of the median durations of the runs of each hour, in minutes.

    Args:
        counts: for each schedule, the number of its runs in each hour.
    """
    totals = [0.0] * hours
    for pk, runs in last_runs(list(counts), viewer.visible).items():
        median = percentile(durations(runs), 0.5) or 0.0
        for place, number in enumerate(counts[pk]):
            totals[place] += number * median / 60
    return totals


class _Hour(NamedTuple):
    start: datetime
    runs: int
    label: str
    address: str
    full: bool


def _hour(start: datetime, end: datetime, runs: int, busy: float | None, slots: int, viewer: Viewer) -> _Hour:
    local = start.astimezone(viewer.zone)
    facts = {"day": date_format(local, "D"), "start": f"{local:%H:%M}", "runs": runs}
    label = ngettext("%(day)s %(start)s: %(runs)s run", "%(day)s %(start)s: %(runs)s runs", runs) % facts
    available = (end - start) / timedelta(minutes=1) * slots
    if busy:  # no run of these schedules has succeeded yet, or there are too many schedules
        words = _("about %(busy)s minutes of work, room for %(all)s") if slots else _("about %(busy)s minutes of work")
        label = f"{label}, {words % {'busy': f'{busy:.0f}', 'all': f'{available:.0f}'}}"
    address = (
        admin_url("scheduling_dashboard_hour", int(start.timestamp())) if runs and viewer.sees("scheduler") else ""
    )
    return _Hour(local, runs, label, address, bool(busy and slots and busy > available))


def _draw(hours: list[_Hour]) -> SafeString:
    shapes = []
    for place, (hour, height) in enumerate(zip(hours, svg.bars([hour.runs for hour in hours], HEIGHT), strict=True)):
        x, tall = LEFT + place * STEP, height if hour.runs else 1
        bar = svg.rect(
            x,
            HEIGHT - tall,
            WIDTH,
            tall,
            "dash-hour-full" if hour.full else "dash-hour" if hour.runs else "dash-hour-none",
        )
        # The whole column can be clicked, because a bar may be only two pixels high.
        column = svg.rect(x, 0, WIDTH, HEIGHT, "dash-hour-column")
        shapes.append(svg.link(hour.address, hour.label, column, bar))
        if place and hour.start.hour % 3 == 0:
            shapes.append(svg.text(x, HEIGHT + 14, f"{hour.start:%H:%M}"))
    total = sum(hour.runs for hour in hours)
    label = ngettext("%(count)d run in the next 24 hours", "%(count)d runs in the next 24 hours", total)
    width = LEFT + len(hours) * STEP
    return svg.picture(width, HEIGHT + 18, label % {"count": total}, shapes, css="dash-day", linked=True)


def hour_of(seconds: int, now: datetime) -> tuple[datetime, datetime] | None:
    """The beginning and the end of an hour of the picture; None if it is not within the next 25 hours.

    Args:
        seconds: the beginning of the hour in epoch seconds.
    """
    if not now.timestamp() - 3600 <= seconds <= now.timestamp() + 25 * 3600:
        return None
    start = datetime.fromtimestamp(seconds, UTC)
    return start, start.replace(minute=0, second=0) + timedelta(hours=1)
