"""Findings about processes that are missing, and about processes that died without recording their end."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import QuerySet
from django.utils.translation import gettext as _

from scheduling.core.text import visible_text
from scheduling.models import Process, Scheduler, SchedulerExecution
from scheduling.monitoring.findings.finding import Finding, Named, counted, fail, named, ok, span, warn

REMEMBERED = timedelta(days=1)
"""How long a silent process is reported. Sweeps recover the runs of a silent process much earlier."""

Queue = SchedulerExecution.Queue


def fell_silent(now: datetime) -> QuerySet[Process]:
    """The processes that fell silent in the last day.

    A killed process stays silent for ever. After a day, it no longer needs attention and is left out.
    """
    return Process.objects.silent(now).filter(heartbeat_at__gte=now - REMEMBERED).order_by("-heartbeat_at")


def examine(now: datetime) -> Iterator[Finding]:
    """Report whether every required kind of process is alive, and which processes fell silent."""
    if producers := Process.objects.alive(now, Process.Kind.PRODUCER).count():
        yield ok("producers", f"{counted(producers, 'producer')} at work.")
    else:
        seen = _("No producer is alive: nothing that falls due is claimed.")
        yield fail("producers", seen, _("Start: manage.py run_scheduler"))
    if consumers := Process.objects.serving(Queue.MAIN, now):
        slots = sum(process.concurrency for process in consumers)
        yield ok("consumers", f"{counted(len(consumers), 'consumer')} at work, {counted(slots, 'run')} at a time.")
    else:
        yield fail("consumers", _("No consumer is alive: what is claimed waits."), _("Start: manage.py run_worker"))
    if standalone := len(Process.objects.serving(Queue.STANDALONE, now)):
        yield ok("standalone", f"{counted(standalone, 'standalone consumer')} at work.")
    elif needed := Scheduler.objects.filter(status=True, stay_alive=True).count():
        seen = _("No standalone consumer is alive. Active schedules that need one: %(count)s.") % {"count": needed}
        yield fail("standalone", seen, _("Start: manage.py run_worker --standalone"))
    silent = warn(
        "silent",
        _("Processes that stopped without saying so: %(count)s."),
        _("Killed, out of memory, or cut off from the database: read its last lines. What it ran was recovered."),
    )
    yield from named(silent, fell_silent(now), lambda process: _silent(process, now))


def _silent(process: Process, now: datetime) -> Named:
    age = span((now - process.heartbeat_at).total_seconds())
    name = f"{process.get_kind_display()} {visible_text(process.container_id, 60)}"
    return Named(name, _("last heartbeat %(time)s ago") % {"time": age})
