"""Findings about processes that are missing, and about processes that died without recording their end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from django.utils.translation import gettext as _

from scheduling.conf import get_conf
from scheduling.core.text import visible_text
from scheduling.models import Process, SchedulerExecution
from scheduling.models.time_words import format_span
from scheduling.monitoring.findings import broker_nodes, handlers, old_code, watched
from scheduling.monitoring.findings.finding import Finding, Named, counted, fail, named, ok, warn
from scheduling.monitoring.findings.present import Present

Queue = SchedulerExecution.Queue


def examine(present: Present) -> Iterator[Finding]:
    """Report whether every required kind of process is alive, and which processes fell silent."""
    now, alive = present.now, _at_work(present)
    yield from producers(present)
    yield from consumers(present)
    silent = warn(
        "silent",
        _("Processes that lost contact: %(count)s."),
        _(
            "They were killed, ran out of memory, or cannot reach the database. "
            "Their unfinished runs count as crashed once their leases are over, and are retried."
        ),
    )
    yield from named(
        silent,
        watched.fell_silent(now),
        lambda process: _silent(process, now),
        total=present.count(watched.fell_silent),
    )
    yield from alarms(alive)
    yield from broker_nodes.examine()
    yield from old_code.examine(alive, now)
    yield from handlers.examine(alive, now)
    yield from clocks(alive)


def producers(present: Present) -> Iterator[Finding]:
    """Report whether a producer is alive."""
    if count := sum(process.kind == Process.Kind.PRODUCER for process in _at_work(present)):
        yield ok("producers", f"{counted(count, 'producer')} at work.")
    else:
        seen = _("No producer is alive: no schedule runs.")
        yield fail("producers", seen, _("Start: manage.py run_scheduler"))


def consumers(present: Present) -> Iterator[Finding]:
    """Report whether a consumer of the main queue is alive, and one of services if there are any."""
    alive = _at_work(present)
    if serving := _serving(Queue.MAIN, alive):
        slots = sum(process.concurrency for process in serving)
        yield ok("consumers", f"{counted(len(serving), 'consumer')} at work, {counted(slots, 'run')} at a time.")
    else:
        yield fail("consumers", _("No consumer is alive: all runs wait."), _("Start: manage.py run_worker"))
    if standalone := len(_serving(Queue.STANDALONE, alive)):
        yield ok("standalone", f"{counted(standalone, 'standalone consumer')} at work.")
    elif needed := present.count(watched.services):
        seen = _("No standalone consumer is alive. Services that do not run: %(count)s.")
        yield fail("standalone", seen % {"count": needed}, _("Start: manage.py run_worker --standalone"))


def _at_work(present: Present) -> list[Process]:
    """The alive processes that do not hold. `deployment` names those that hold."""
    return [process for process in present.alive if not process.held]


def _serving(queue: str, alive: Iterable[Process]) -> list[Process]:
    return [process for process in alive if process.kind == Process.Kind.CONSUMER and process.serves(queue)]


def alarms(alive: Iterable[Process]) -> Iterator[Finding]:
    """Report the processes whose messages the broker does not take."""
    finding = fail(
        "broker alarm",
        _("The broker takes no messages of processes: %(count)s. What is due waits, and nothing is lost."),
        _("Free memory or disk on the host of the broker. The runs start by themselves afterwards."),
    )
    yield from named(finding, [process for process in alive if process.alarm[0]], _alarm)


def _alarm(process: Process) -> Named:
    why, seconds = process.alarm
    name = f"{process.get_kind_display()} {visible_text(process.container_id, 60)}"
    return Named(name, _("for %(time)s: %(why)s") % {"time": format_span(seconds), "why": why.rstrip(".")})


def clocks(alive: Iterable[Process]) -> Iterator[Finding]:
    """Report the processes whose host has a wrong clock.

    The times are compared in Python, because plain SQL may have written anything into the column.
    """
    limits = get_conf()
    by_id = sorted(alive, key=lambda process: process.pk)
    refused = [process for process in by_id if abs(process.clock_ahead) >= limits.clock_limit_seconds]
    warned = [process for process in by_id if abs(process.clock_ahead) >= limits.clock_warn_seconds]
    if not warned:
        return
    advice = _("Run a time service (chrony, systemd-timesyncd) on every host.")
    if refused:
        seen = _("Processes with a wrong clock, which claim, start and recover nothing: %(count)s.")
        yield from named(fail("clocks", seen, advice), refused, _clock)
    else:
        yield from named(warn("clocks", _("Processes with a wrong clock: %(count)s."), advice), warned, _clock)


def _clock(process: Process) -> Named:
    name = f"{process.get_kind_display()} {visible_text(process.container_id, 60)}"
    about = _("%(time)s ahead of the database") if process.clock_ahead > 0 else _("%(time)s behind the database")
    return Named(name, about % {"time": format_span(abs(process.clock_ahead))})


def _silent(process: Process, now: datetime) -> Named:
    age = format_span(max(0.0, (now - process.heartbeat_at).total_seconds()))
    name = f"{process.get_kind_display()} {visible_text(process.container_id, 60)}"
    return Named(name, _("last heartbeat %(time)s ago") % {"time": age})
