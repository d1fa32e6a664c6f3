"""The part "Schedules" of the dashboard.

For each schedule, it shows bars for the last 30 runs, the success rate, the durations and the next run.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.core.paginator import Paginator
from django.utils.translation import gettext as _

from scheduling.admin.common.confirm import new_key
from scheduling.admin.common.viewer import Viewer
from scheduling.admin.stats.run_bars import bars
from scheduling.admin.stats.runs import durations, percentile, success_rate, told_at
from scheduling.admin.ui.badges import health_badge, state_badge
from scheduling.admin.ui.links import admin_url
from scheduling.admin.ui.schedules import in_words, zone_of
from scheduling.admin.ui.times import EMPTY, due_words, format_duration, relative_time_tag
from scheduling.core.cron import CronError, ZoneError
from scheduling.core.durations import p95
from scheduling.core.known_sentences import for_reader
from scheduling.core.lifecycle import State
from scheduling.core.text import visible_text
from scheduling.handlers.permission import lacked
from scheduling.models import Scheduler
from scheduling.models import health as health_rules
from scheduling.models.health import health_in_bulk, health_of, most_urgent
from scheduling.models.last_runs import Ran, last_runs

BLOCKED = State.BLOCKED.value
PER_PAGE = 20
"""The most urgent come first. The list of schedules has all of them, with filters."""
BUILT_IN = "run_command"
"""The name of the Worker that runs the nightly cleanup. `migrate` creates the schedule of this Worker. Therefore this
schedule does not count as a user's own schedule."""


def schedules(viewer: Viewer) -> dict[str, Any]:
    """The template context: one page of the table of schedules."""
    rows = viewer.visible.schedules()
    number = rows.count()
    paginator = Paginator(most_urgent(rows, viewer.now, number <= health_rules.SORTED_SCHEDULES), PER_PAGE)
    vars(paginator)["count"] = number  # it would count the rows again, together with their health
    page = paginator.get_page(viewer.page)
    found = health_in_bulk(page.object_list, viewer.now)
    runs = last_runs([row.pk for row in found], viewer.visible)
    reasons = _reasons([run.pk for own in runs.values() for run in own[-1:] if run.state == BLOCKED], viewer)
    return {
        "lines": [_line(row, runs[row.pk], viewer) | {"waits": reasons.get(row.pk, "")} for row in found],
        "page": page,
        "pages": page.paginator.get_elided_page_range(page.number) if page.paginator.num_pages > 1 else (),
        "may_run": viewer.may_run,
        "may_pause": viewer.may_pause,
        # The first steps are for a new installation, which has few schedules.
        "own": number > PER_PAGE or rows.exclude(worker__name=BUILT_IN).exists(),
        "add": admin_url("scheduling_scheduler_add") if viewer.may("add_scheduler") else "",
    }


def _reasons(blocked: Sequence[int], viewer: Viewer) -> dict[int, str]:
    """Why the newest runs may not start yet, by the ids of their schedules. Without such runs, no query is made."""
    rows = viewer.visible.executions().filter(pk__in=blocked).values_list("scheduler", "reason") if blocked else ()
    return {pk: for_reader(reason, 160) for pk, reason in rows if pk is not None}


def _line(row: Scheduler, runs: Sequence[Ran], viewer: Viewer) -> dict[str, Any]:
    took, rate, info = durations(runs), success_rate(runs), zone_of(row)
    may_act = lacked(viewer.user, row) is None
    last = next((run for run in reversed(runs) if run.pk == row.last_result), None)  # type: ignore[attr-defined]
    last_at = told_at(last) if last is not None else None
    return {
        "pk": row.pk,
        "name": visible_text(row, 80),
        "address": viewer.scheduler(row.pk),
        "words": _words(row),
        "cron": visible_text(row.schedule, 60),
        "zone": visible_text(row.zone_name, 64),
        "on": row.status,
        "because": for_reader(row.paused_because, 160),
        "pause": admin_url("scheduling_scheduler_pause", row.pk) if viewer.may_pause and may_act else "",
        "resume": admin_url("scheduling_scheduler_resume", row.pk) if viewer.may_pause and may_act else "",
        "health": health_badge(health_of(row)),
        "bars": bars(runs, viewer, info),
        "rate": EMPTY if rate is None else _("%(share)d %%") % {"share": int(rate * 100)},
        "rate_bad": rate is not None and rate < 0.9,
        "p50": format_duration(percentile(took, 0.5) or 0) if took else EMPTY,
        "p95": format_duration(high) if (high := p95(took)) is not None else "",
        "last": state_badge(last.state) if last else "",
        "last_address": viewer.execution(last.pk) if last else "",
        "last_at": relative_time_tag(last_at, viewer.now, info),
        "next": _next(row, viewer.now),
        "plan_error": for_reader(row.plan_error, 160),
        "run": admin_url("scheduling_scheduler_run", row.pk) if viewer.may_run and may_act else "",
        "key": new_key(),
    }


def _words(row: Scheduler) -> str:
    try:
        return in_words(row)
    except (CronError, ZoneError):
        return ""


def _next(row: Scheduler, now: datetime) -> object:
    if row.next_run_at is None:
        return EMPTY
    if row.next_run_at <= now:
        return due_words(row.next_run_at, now)
    return relative_time_tag(row.next_run_at, now, zone_of(row))
