"""Finds queues that no consumer serves, although runs wait in them, or code or a schedule names them.

Also finds handlers that no consumer of their queue runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from django.utils.translation import gettext as _

from scheduling.core.chosen import EVERYTHING, Chosen
from scheduling.core.lifecycle import WAITING, State
from scheduling.core.queues import MAIN, is_work_queue, queue_of
from scheduling.core.text import visible_text
from scheduling.handlers import handlers
from scheduling.handlers.queues import queues_in_code
from scheduling.models import Process, Scheduler, SchedulerExecution
from scheduling.models.counts import Count
from scheduling.models.process import CHOSEN
from scheduling.monitoring.findings.finding import NAMED_ROWS, Finding, Named, fail, named, warn
from scheduling.monitoring.findings.present import Present
from scheduling.monitoring.findings.watched import ALWAYS

MOST_NAMED = 100
"""How many queues of schedules are looked at."""


def examine(present: Present) -> Iterator[Finding]:
    """Report the queues without a consumer. The main queue and the queue of services have findings of their own."""
    consumers = _consumers(present)
    served = _served(consumers)
    if served is None:
        return
    yield from _left_out(consumers)
    waiting = set[str]()
    for queue, finding in unserved(present):
        waiting.add(queue)
        yield finding
    idle = [named for named in _named(present) if named.name not in served and named.name not in waiting]
    if idle:
        finding = warn(
            "unserved queues",
            _("Queues that no consumer serves, and in which nothing waits yet: %(count)s.") % {"count": len(idle)},
            _("Start a consumer for them (run_worker --queue), or change the handlers and schedules that name them."),
        )
        more = Count(max(0, len(idle) - NAMED_ROWS))
        yield Finding(finding.check, finding.level, finding.seen, finding.advice, idle[:NAMED_ROWS], more)


def unserved(present: Present) -> Iterator[tuple[str, Finding]]:
    """The queues in which runs wait and that no consumer serves, each with its finding."""
    served = _served(_consumers(present))
    if served is None:
        return
    waiting: dict[str, list[str]] = {}
    for work in present.used_queues(*_STATES):
        if (queue := queue_of(work)) not in served:
            waiting.setdefault(queue, []).append(work)
    rows = SchedulerExecution.objects.in_state(*_STATES)
    for queue, number in present.counts(
        {queue: rows.filter(queue__in=works) for queue, works in waiting.items()}
    ).items():
        yield queue, _unserved(queue, number)


def _consumers(present: Present) -> list[Process]:
    return [process for process in present.alive if process.kind == Process.Kind.CONSUMER and not process.held]


def _served(consumers: Iterable[Process]) -> set[str] | None:
    """The queues that are served; None if a consumer has not said yet what it serves."""
    served = {queue for process in consumers for queue in process.queue.split(",")}
    return None if "" in served else served | set(ALWAYS)


def _left_out(consumers: Iterable[Process]) -> Iterator[Finding]:
    """Report the handlers that no consumer of their queue runs, because each was started with other ones."""
    choices: dict[str, list[Chosen]] = {}
    for process in consumers:
        info = process.info if isinstance(process.info, dict) else {}
        chosen = Chosen.parse(info[CHOSEN]) if isinstance(info.get(CHOSEN), str) else EVERYTHING
        for queue in process.queue.split(","):
            choices.setdefault(queue, []).append(chosen)
    found = [
        Named(visible_text(f"{handler.type} {handler.name}", 100), _("queue “%s”") % visible_text(queue, 60))
        for handler in handlers()
        if (queue := handler.queue or MAIN) in choices and not any(handler.name in chosen for chosen in choices[queue])
    ]
    finding = warn(
        "left out handlers",
        _("Handlers that no consumer of their queue runs: %(count)s."),
        _("Each consumer of the queue was started with --only or --except. Start one without, or with these handlers."),
    )
    yield from named(finding, found, lambda each: each)


_STATES = sorted(WAITING, key=list(State).index)


def _unserved(queue: str, number: Count) -> Finding:
    facts = {"queue": visible_text(queue, 60), "count": number}
    seen = _("No consumer serves the queue “%(queue)s”. Runs that wait in it: %(count)s.") % facts
    if not is_work_queue(queue):
        return fail("unserved queues", seen, _("No queue can have this name: plain SQL has written it. Correct it."))
    return fail("unserved queues", seen, _("Start: manage.py run_worker --queue %(queue)s") % facts)


def _named(present: Present) -> list[Named]:
    """The queues that code and active schedules name, with one of those that name them."""
    found = {queue: Named(queue, f"{handler.type} {handler.name}") for queue, handler in queues_in_code().items()}
    rows = present.visible.only(Scheduler.objects.filter(status=True).exclude(queue=""))
    for queue in rows.order_by().values_list("queue", flat=True).distinct()[:MOST_NAMED]:
        if isinstance(queue, str):
            found.setdefault(queue, Named(visible_text(queue, 60), _("a schedule")))
    return [found[queue] for queue in sorted(found)]
