"""Findings about schedules that have no registered code, cannot be planned, are late or fail repeatedly."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from scheduling.conf import get_conf
from scheduling.core.health import Health
from scheduling.core.known_sentences import in_language
from scheduling.core.lifecycle import State
from scheduling.core.text import visible_text
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.counts import Count
from scheduling.models.health import LEFT_OUT_ON_PURPOSE, health_of, with_health
from scheduling.models.last_runs import failures_in_a_row, last_runs
from scheduling.models.newest import newest_values
from scheduling.models.scheduler import load_names
from scheduling.models.time_words import format_span
from scheduling.models.visibility import Visibility
from scheduling.monitoring.findings import watched
from scheduling.monitoring.findings.finding import Finding, Named, fail, named, ok, warn
from scheduling.monitoring.findings.present import Present
from scheduling.monitoring.findings.targets import unregistered
from scheduling.monitoring.findings.watched import Rows

VERY_LATE = timedelta(minutes=5)

IN_A_ROW = 3
STREAK_RUNS = 10
"""How many of a schedule's last runs are read to count the failures in a row."""

LOOKED_AT = 1_000
"""How many of the newest skipped executions are read to find their schedules."""
LISTED = 50
"""How many of these schedules are looked at."""


def examine(present: Present) -> Iterator[Finding]:
    """Find active schedules that cannot run, are late, or fail again and again."""
    yield from list(_code(present.visible)) or [ok("code", "The code of every active schedule is registered here.")]
    yield from _plans(present)
    yield from _overdue(present)
    yield from _failing(present)
    yield from _skipped(present)
    yield from _paused_by_failures(present)
    yield from _paused(present)


def _code(visible: Visibility) -> Iterator[Finding]:
    finding = fail(
        "code",
        _("Active schedules whose code is not registered here: %(count)s."),
        _("Deploy the code that registers it, choose another target, or pause these schedules."),
    )
    for type_, names in unregistered().items():
        if names:
            rows = visible.schedules().filter(status=True, **{f"{type_}__in": list(names)}).order_by("pk")
            yield from _named(finding, rows, lambda row: f"{row.target_type} {getattr(row.target, 'handler_name', '')}")


def _plans(present: Present) -> Iterator[Finding]:
    broken = fail(
        "plans",
        _("Schedules that will not run until they are fixed: %(count)s."),
        _("Open the schedule: its form says what is wrong."),
    )
    finished = warn(
        "next run",
        _("Active schedules without a next run: %(count)s."),
        _("No future run: set a date in the future, or pause them."),
    )
    fine = "Every active schedule can be planned."
    yield from _watched(broken, watched.set_aside, present, lambda row: in_language(row.plan_error), fine)
    yield from _watched(finished, watched.without_next_run, present, lambda row: row.schedule)


def _overdue(present: Present) -> Iterator[Finding]:
    now = present.now

    def waited(instant: datetime | None) -> str:
        return format_span((now - (instant or now)).total_seconds())

    late = present.rows(watched.overdue).values_list("next_run_at", flat=True)
    oldest = late.first() if present.count(watched.overdue) else None
    if oldest is None:
        yield ok("late", "Nothing that is due is left unclaimed.")
        return
    advice = _(
        "Check that a producer runs, and read its log. As soon as a producer works again, each late schedule runs "
        "once, if its last due time is at most %(limit)s ago. Earlier due times are skipped."
    )
    finding = (fail if oldest < now - VERY_LATE else warn)(
        "late",
        _("Late schedules that no producer has claimed: %(count)s, the oldest for %(time)s."),
        advice % {"limit": format_span(get_conf().catch_up_seconds)},
    )
    yield from _watched(finding, watched.overdue, present, lambda row: waited(row.next_run_at), time=waited(oldest))


def _failing(present: Present) -> Iterator[Finding]:
    tally = Counter(failed.scheduler_id for failed in present.failures if failed.scheduler_id is not None)
    often = [pk for pk, failures in tally.most_common(LISTED) if failures >= IN_A_ROW]
    streaks = {pk: failures_in_a_row(runs) for pk, runs in last_runs(often, present.visible, STREAK_RUNS).items()}
    seen = _("Schedules that failed 3 or more times in a row: %(count)s.")
    finding = warn("failing", seen, _("Fix the cause, then republish."))

    def streak(row: Scheduler) -> str:
        failures = streaks[row.pk]
        return _("%(count)s in a row") % {"count": f"{failures}+" if failures >= STREAK_RUNS else failures}

    rows = present.visible.schedules().filter(pk__in=[pk for pk in often if streaks[pk] >= IN_A_ROW])
    yield from _named(finding, rows.order_by("pk"), streak)


def _skipped(present: Present) -> Iterator[Finding]:
    visible = present.visible
    skips = SchedulerExecution.objects.in_state(State.SKIPPED).exclude(LEFT_OUT_ON_PURPOSE)
    reasons: dict[int, str] = {}
    for pk, reason in newest_values(skips, visible, ("scheduler", "reason"), LOOKED_AT):
        if pk is not None:
            reasons.setdefault(pk, reason)  # the newest one
    listed = visible.schedules().filter(pk__in=list(reasons)[:LISTED])
    rows = with_health(listed, present.now).filter(status=True)
    found = [row for row in rows.order_by("pk") if health_of(row) is Health.SKIPPED]
    finding = warn(
        "skipped",
        _("Schedules whose last occurrence did not run: %(count)s."),
        _("Run them now if their work is still needed."),
    )
    yield from _named(finding, found, lambda row: in_language(reasons[row.pk]))


def _paused_by_failures(present: Present) -> Iterator[Finding]:
    finding = warn(
        "paused by failures",
        _("Schedules that their own rule has paused after failures in a row: %(count)s."),
        _("Fix the cause, and resume them. Republish the failures that are still needed."),
    )
    yield from _watched(finding, watched.paused_by_failures, present, lambda row: in_language(row.pause_reason))


def _paused(present: Present) -> Iterator[Finding]:
    def about(row: Scheduler) -> str:
        time = format_span((present.now - (row.paused_at or present.now)).total_seconds())
        who = _("%(time)s, by %(name)s") % {"time": time, "name": row.paused_by} if row.paused_by else time
        return f"{who}: {in_language(row.pause_reason)}" if row.pause_reason else who

    finding = warn(
        "paused",
        _("Schedules paused for more than a day: %(count)s."),
        _("Resume them, or delete them if they are not needed any more."),
    )
    yield from _watched(finding, watched.paused_long, present, about)


def _watched(
    finding: Finding,
    rows: Rows,
    present: Present,
    about: Callable[[Scheduler], str],
    fine: str = "",
    **facts: object,
) -> Iterator[Finding]:
    return _named(finding, present.rows(rows), about, fine, present.count(rows), **facts)


def _named(
    finding: Finding,
    rows: QuerySet[Scheduler] | Sequence[Scheduler],
    about: Callable[[Scheduler], str],
    fine: str = "",
    total: Count | None = None,
    **facts: object,
) -> Iterator[Finding]:
    def describe(row: Scheduler) -> Named:
        return Named(visible_text(row, 80), visible_text(about(row), 160), row.pk)

    return named(finding, rows, describe, fine, load_names, total, **facts)
