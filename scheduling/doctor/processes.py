"""Processes: who is at work, and who stopped without saying so."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from scheduling.conf import get_conf
from scheduling.doctor.finding import Finding, counted, fail, ok, some, warn
from scheduling.models import Process, Scheduler, SchedulerExecution
from scheduling.reconcile import SILENT_AFTER

REMEMBERED = timedelta(hours=1)
"""For how long a process that fell silent is worth a warning: its runs were recovered long before."""


def patience() -> timedelta:
    """How old a heartbeat may be: a consumer renews it with its leases, every third of their length or sooner."""
    return max(SILENT_AFTER, timedelta(seconds=get_conf().lease_seconds))


def alive(now: datetime) -> list[Process]:
    """Those whose heart beats."""
    return list(Process.objects.filter(stopped_at__isnull=True, heartbeat_at__gte=now - patience()))


def examine(now: datetime) -> Iterator[Finding]:
    """At least one of each kind that is needed."""
    present = alive(now)
    producers = [each for each in present if each.kind == Process.Kind.PRODUCER]
    consumers = [each for each in present if each.kind == Process.Kind.CONSUMER]
    standalone = [each for each in consumers if _queue(each) == SchedulerExecution.Queue.STANDALONE]
    main = [each for each in consumers if each not in standalone]
    if producers:
        yield ok("producers", f"{counted(len(producers), 'producer')} at work.")
    else:
        yield fail("producers", "None is at work: nothing that falls due is claimed.", "Start: manage.py run_scheduler")
    if main:
        slots = sum(each.concurrency for each in main)
        yield ok("consumers", f"{counted(len(main), 'consumer')} at work, {counted(slots, 'run')} at a time.")
    else:
        yield fail("consumers", "None is at work: what is claimed waits.", "Start: manage.py run_worker")
    needed = Scheduler.objects.filter(status=True, stay_alive=True).count()
    if standalone:
        yield ok("standalone", f"{counted(len(standalone), 'standalone consumer')} at work.")
    elif needed:
        yield fail(
            "standalone",
            f"{counted(needed, 'active schedule')} marked standalone, and no standalone consumer is at work.",
            "Start: manage.py run_worker --standalone",
        )
    yield from _silent(now)


def _silent(now: datetime) -> Iterator[Finding]:
    silent = Process.objects.filter(
        stopped_at__isnull=True, heartbeat_at__lt=now - patience(), heartbeat_at__gte=now - REMEMBERED
    )
    names = [f"{each.kind} {each.container_id}" for each in silent[:100]]
    if names:
        yield warn(
            "silent",
            f"{counted(len(names), 'process', 'processes')} stopped without saying so: {some(names)}.",
            "Killed, out of memory, or cut off from the database: read its last lines. What it ran was recovered.",
        )


def _queue(process: Process) -> str:
    return str(process.info.get("queue", "")) if isinstance(process.info, dict) else ""
