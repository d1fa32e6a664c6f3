"""Finds processes that are missing, hold, or have a wrong clock."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from django.db.models import Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from scheduling.alerts.look import Look
from scheduling.alerts.reading import readable_rows
from scheduling.alerts.wanted import Wanted
from scheduling.core.alerts import Situation
from scheduling.core.known_sentences import in_language
from scheduling.core.queues import MAIN, STANDALONE
from scheduling.models import Process
from scheduling.models.process import AHEAD
from scheduling.monitoring.findings import processes, queues
from scheduling.monitoring.findings.deployment import CONFIRM
from scheduling.monitoring.findings.finding import Finding, Level

RESTART = timedelta(seconds=30)
"""For so long a process may be missing, because a deploy or an operator restarts it."""

MOST_PROCESSES = 1_000


def no_producer(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """No producer is alive, and none was within `RESTART`."""
    for finding in processes.producers(look.present):
        if finding.level is Level.FAIL and not _gone_lately(look, Process.Kind.PRODUCER):
            yield from _told(rules, finding, "producers", _("producers"))


def no_consumer(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """No consumer serves a queue in which runs wait, or which every site uses, and none did within `RESTART`."""
    for finding in processes.consumers(look.present):
        if finding.level is Level.FAIL and not _served_lately(look, OF_CHECKS[finding.check][0]):
            yield from _told(
                rules, replace(finding, seen=str(OF_CHECKS[finding.check][1])), finding.check, _("consumers")
            )
    for queue, finding in queues.unserved(look.present):
        if not _served_lately(look, queue):
            subject = _("queue “%(queue)s”") % {"queue": queue}
            seen = _("No consumer serves the queue “%(queue)s”, and runs wait in it.") % {"queue": queue}
            yield from _told(rules, replace(finding, seen=seen), f"queue {queue}", subject)


OF_CHECKS = {
    "consumers": (MAIN, gettext_lazy("No consumer is alive: all runs wait.")),
    "standalone": (STANDALONE, gettext_lazy("No standalone consumer is alive, so services do not run.")),
}
"""For each check of `findings.processes.consumers` its queue, and what is told. It counts no rows of groups."""


def _served_lately(look: Look, queue: str) -> bool:
    return any(process.serves(queue) for process in _gone_lately(look, Process.Kind.CONSUMER))


def _gone_lately(look: Look, kind: Process.Kind) -> list[Process]:
    """The processes of this kind that have stopped, or have beaten for the last time, within `RESTART`."""
    since = look.now - RESTART
    lately = Q(stopped_at__gte=since) | Q(stopped_at=None, heartbeat_at__gte=since)
    rows = Process.objects.filter(lately, kind=kind, heartbeat_at__gte=since, heartbeat_at__lte=look.now + AHEAD)
    return [process for process in readable_rows(rows.order_by("-pk"), MOST_PROCESSES) if not process.held]


def clock(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """The clock of a host is wrong."""
    for finding in processes.clocks(look.present.alive):
        yield from _told(rules, finding, "clocks", _("clocks"))


def hold(rules: Sequence[Wanted], look: Look) -> Iterator[tuple[Wanted, Situation]]:
    """This process holds, or another alive process does, because the database is a copy or was restored."""
    reasons = [look.hold] if look.hold else [process.held for process in look.present.alive if process.held]
    if not reasons:
        return
    advice = _("Look at what waits, then confirm: %(command)s, or the page Deployment.") % {"command": CONFIRM}
    seen = _("Nothing is claimed, started or published. %(reason)s") % {"reason": in_language(reasons[0])}
    for rule in rules:
        yield rule, Situation("hold", _("deployment"), seen, advice)


def _told(rules: Sequence[Wanted], finding: Finding, key: str, subject: str) -> Iterator[tuple[Wanted, Situation]]:
    for rule in rules:
        yield rule, Situation(key, subject, finding.in_full, finding.advice)
