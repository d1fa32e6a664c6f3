"""Findings about executions that wait too long, and about executions whose process is gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from scheduling.core.durations import usual
from scheduling.core.lifecycle import State
from scheduling.core.text import visible_text
from scheduling.models import Process, SchedulerExecution
from scheduling.models.counts import Count
from scheduling.models.labels import queue_label
from scheduling.models.last_runs import durations, last_runs
from scheduling.models.newest import newest_values
from scheduling.models.time_words import format_span
from scheduling.models.visibility import Visibility
from scheduling.monitoring.findings import watched
from scheduling.monitoring.findings.finding import NAMED_ROWS, Finding, Named, fail, named, ok, warn
from scheduling.monitoring.findings.idle import IDLE_LONG, idle_consumers, waiting_since
from scheduling.monitoring.findings.present import Present

LOOKED_AT = 50
"""How many running executions are compared with the usual duration of their schedules."""
QUEUED_LONG = timedelta(minutes=5)


def examine(present: Present) -> Iterator[Finding]:
    """Find executions that stay queued, claimed or running for too long."""
    queues = (*watched.ALWAYS, *present.used_queues(State.QUEUED))
    queued = [finding for queue in queues for finding in _queued(queue, present)]
    yield from queued or [ok("queued", "Nothing waits.")]
    if present.count(watched.running):
        yield from _slow(present.now, present.visible)
    yield from _unsteady(present)
    claimed = warn(
        "claimed",
        _("Runs claimed and not confirmed by the broker: %(count)s."),
        _("They are published again every few seconds. Check that the broker can be reached and a producer runs."),
    )
    lost = fail(
        "leases",
        _("Runs whose process is gone, not recovered yet: %(count)s."),
        _("Producers recover them every few seconds. Start one, or read the producers' logs."),
    )
    for rows, finding in ((watched.claimed_long, claimed), (watched.running_long, lost)):
        if (rows is watched.running_long or present.count(watched.queued)) and (stuck := present.count(rows)):
            yield replace(finding, seen=finding.seen % {"count": stuck})


def _slow(now: datetime, visible: Visibility) -> Iterator[Finding]:
    rows = SchedulerExecution.objects.in_state(State.RUNNING).exclude(scheduler=None).exclude(started_at=None)
    running = newest_values(rows, visible, ("pk", "scheduler", "started_at", "target_name"), LOOKED_AT, oldest=True)
    runs = last_runs({scheduler for _pk, scheduler, *_rest in running}, visible, ends=False)
    found = []
    for pk, scheduler, started_at, name in running:
        known = usual(durations(runs[scheduler]))
        seconds = (now - (started_at or now)).total_seconds()
        if known is not None and known.times(seconds):
            facts = {"time": format_span(seconds), "usual": format_span(known.median)}
            about = _("%(time)s, usually %(usual)s") % facts
            found.append(Named(visible_text(name, 80), about, pk))
    if found:
        slow = warn(
            "slow",
            _("Runs that take much longer than usual: %(count)s.") % {"count": len(found)},
            _("Read their output. Cancel them if they hang."),
        )
        more = len(found) - NAMED_ROWS
        yield replace(slow, rows=found[:NAMED_ROWS], more=Count(max(more, 0)))


def _unsteady(present: Present) -> Iterator[Finding]:
    finding = warn(
        "services",
        _("Services that ended 3 or more times in a row: %(count)s."),
        _("Read the error and the output of their last attempts. They are started again with a growing delay."),
    )

    def about(row: SchedulerExecution) -> Named:
        text = _("%(count)d restarts, the last end: %(error)s")
        facts = {"count": row.restarts, "error": row.error_class or _("it returned")}  # type: ignore[attr-defined]
        return Named(visible_text(row.target_name, 80), visible_text(text % facts, 160), row.pk)

    rows = present.rows(watched.unsteady).defer("params", "error_message")
    yield from named(finding, rows, about, total=present.count(watched.unsteady))


def _idle(consumers: list[Process], facts: dict[str, object]) -> Iterator[Finding]:
    text = _("Consumers are idle, and runs of the queue “%(queue)s” wait: %(count)s, the oldest for %(time)s.")
    advice = _("See that these consumers reach the broker, and read their logs. Restart them if nothing else helps.")
    seen = (text % facts).replace("%", "%%")
    yield from named(fail("idle", seen, advice), consumers, _consumer)


def _consumer(process: Process) -> Named:
    free = process.concurrency - process.info["running"]
    about = ngettext("%(count)d free slot", "%(count)d free slots", free) % {"count": free}
    return Named(visible_text(process.container_id, 60), about)


def _queued(queue: str, present: Present) -> Iterator[Finding]:
    now, rows = present.now, watched.waiting(queue)
    oldest = present.rows(rows).values_list("wake_at", flat=True).first() if present.count(rows) else None
    if oldest is not None:
        facts = {
            "count": present.count(rows),
            "queue": queue_label(queue),
            "time": format_span((now - oldest).total_seconds()),
        }
        idle = idle_consumers(queue, present.alive, now) if now - oldest > IDLE_LONG else []
        if idle and waiting_since(queue, now) is not None:
            yield from _idle(idle, facts)
            return
        seen = _("Runs waiting in the queue “%(queue)s”: %(count)s, the oldest for %(time)s.") % facts
        if now - oldest > QUEUED_LONG:
            yield warn("queued", seen, _("Start more consumers, or give them more --concurrency."))
        else:
            yield ok("queued", seen)
