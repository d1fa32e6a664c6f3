"""Schedules: each with its last 30 runs as bars, how reliable and how long it is, and what comes next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.core.paginator import Paginator
from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from scheduling.admin import svg
from scheduling.admin.chips import STATES
from scheduling.admin.confirm import new_key
from scheduling.admin.dashboard.figures import percentile
from scheduling.admin.dashboard.history import FAILURES, RUNS, Ran, durations, last_runs, success_rate
from scheduling.admin.dashboard.viewer import Viewer
from scheduling.admin.parts import EMPTY, ago, length, relative, shown, state_chip
from scheduling.admin.scheduler_panels import in_words
from scheduling.core.cron import CronError, ZoneError
from scheduling.core.lifecycle import State
from scheduling.models import Scheduler
from scheduling.models.scheduler import TARGETS

PER_PAGE = 50
BUILT_IN = "run_command"
"""The worker behind the nightly cleanup, which `migrate` makes: a schedule that is nobody's own."""

WIDTH, STEP, HEIGHT = 6, 8, 26
LINKED = FAILURES | {State.CANCELLED.value, State.RETRYING.value, State.SKIPPED.value}
"""Bars that one wants to open; the last result, of whatever kind, is a link beside them."""


def schedules(viewer: Viewer) -> dict[str, Any]:
    """One page of the table."""
    rows = Scheduler.objects.order_by("-status", "pk").prefetch_related(*TARGETS)
    page = Paginator(rows, PER_PAGE).get_page(viewer.page)
    found = list(page.object_list)
    runs = last_runs([row.pk for row in found])
    return {
        "lines": [_line(row, runs[row.pk], viewer) for row in found],
        "page": page,
        "pages": page.paginator.get_elided_page_range(page.number) if page.paginator.num_pages > 1 else (),
        "may_run": viewer.may_run,
        "may_pause": viewer.may_pause,
        "own": Scheduler.objects.exclude(worker__name=BUILT_IN).exists(),
        "add": reverse("admin:scheduling_scheduler_add") if viewer.may("add_scheduler") else "",
    }


def _line(row: Scheduler, runs: Sequence[Ran], viewer: Viewer) -> dict[str, Any]:
    took, rate = durations(runs), success_rate(runs)
    last = runs[-1] if runs else None
    return {
        "pk": row.pk,
        "name": shown(row, 80),
        "address": viewer.scheduler(row.pk),
        "words": _words(row),
        "cron": shown(row.schedule, 60),
        "zone": shown(row.zone_name, 64),
        "on": row.status,
        "because": shown(row.paused_because, 160),
        "pause": reverse("admin:scheduling_scheduler_pause", args=[row.pk]) if viewer.may_pause else "",
        "resume": reverse("admin:scheduling_scheduler_resume", args=[row.pk]) if viewer.may_pause else "",
        "bars": bars(runs, viewer),
        "rate": EMPTY if rate is None else _("%(share)d %%") % {"share": int(rate * 100)},
        "rate_bad": rate is not None and rate < 0.9,
        "p50": length(percentile(took, 0.5) or 0) if took else EMPTY,
        "p95": length(percentile(took, 0.95) or 0) if took else "",
        "last": state_chip(last.state) if last else "",
        "last_address": viewer.execution(last.pk) if last else "",
        "last_at": ago(last.finished_at or last.started_at or last.scheduled_at, viewer.now) if last else "",
        "next": _next(row, viewer.now),
        "plan_error": shown(row.plan_error, 160),
        "run": reverse("admin:scheduling_scheduler_run", args=[row.pk]) if viewer.may_run else "",
        "key": new_key(),
    }


def bars(runs: Sequence[Ran], viewer: Viewer) -> SafeString:
    """The runs as bars, oldest first: height is duration, colour is result, dashed was skipped."""
    heights = svg.bars([run.seconds or 0.0 for run in runs], HEIGHT)
    # At the right is now, so that rows of the table can be compared.
    left = (RUNS - len(runs)) * STEP
    shapes = []
    for number, (run, height) in enumerate(zip(runs, heights, strict=True)):
        skipped = run.state == State.SKIPPED.value
        tall = HEIGHT if skipped else height
        words = _said(run, viewer)
        bar = svg.rect(
            left + number * STEP + 0.5,
            round(HEIGHT - tall + 0.5, 1),
            WIDTH - 1 if skipped else WIDTH,
            tall - (1 if skipped else 0),
            # Most bars are green: what needs no class is not said fifteen hundred times.
            f"dash-is-{run.state}" if run.state in STATES and run.state != State.SUCCEEDED.value else None,
            "" if run.state in LINKED else words,
        )
        linked = run.state in LINKED
        shapes.append(svg.link(viewer.execution(run.pk), words, bar, skipped=True) if linked else bar)
    tally = Counter(run.state for run in runs)
    label = ", ".join(f"{number} {STATES[State(state)][0]}" for state, number in tally.items() if state in STATES)
    return svg.picture(
        RUNS * STEP,
        HEIGHT + 1,
        _("Last %(count)d runs: %(label)s") % {"count": len(runs), "label": label} if runs else _("No runs yet"),
        shapes,
        css="dash-bars",
        linked=any(run.state in LINKED for run in runs),
    )


def _said(run: Ran, viewer: Viewer) -> str:
    word = STATES[State(run.state)][0] if run.state in STATES else run.state
    at = f"{run.scheduled_at.astimezone(viewer.zone):%Y-%m-%d %H:%M}"
    if run.state == State.SKIPPED.value:
        return f"{at}: {word}" + (f" ({run.missed})" if run.missed > 1 else "")
    return f"{at}: {word}, {length(run.seconds)}" if run.seconds is not None else f"{at}: {word}"


def _words(row: Scheduler) -> str:
    try:
        return in_words(row)
    except (CronError, ZoneError):
        return ""


def _next(row: Scheduler, now: datetime) -> object:
    if row.next_run_at is None:
        return EMPTY
    if row.next_run_at <= now:
        return _("due, %(when)s") % {"when": relative(row.next_run_at, now)}
    return ago(row.next_run_at, now)
