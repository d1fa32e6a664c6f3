"""Counts the executions that wait or run in each queue, and the slots that they need."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from scheduling.core.lifecycle import OPEN_STATES, State
from scheduling.core.needed_slots import AHEAD, UNKNOWN_SECONDS, due_ahead, needed_slots
from scheduling.core.queues import WORK_QUEUE_LENGTH, queue_of
from scheduling.core.tallies import OTHER, label
from scheduling.core.targets import TARGET_KINDS
from scheduling.handlers.queues import QueueInvalid, work_queue_of
from scheduling.models import Scheduler, SchedulerExecution, Tally
from scheduling.models.counts import counts
from scheduling.models.plan import FIRST_INSTANT
from scheduling.models.used_queues import first_queues

MOST_QUEUES = 20
"""So many work queues of a state are counted by name. The others are counted together."""
MOST_EXECUTIONS = 5_000
"""Each count stops here."""
MOST_SCHEDULES = 500
"""So many schedules are looked at for the occurrences of the next minutes."""
TALLIES = 200
"""From so many of the newest tallies of a queue, the usual duration is found."""


@dataclass
class WaitingWork:
    """The work of all queues.

    Args:
        open: how many executions there are, by state and queue.
        waiting: how many runs of each queue wait, or are due soon.
        running: how many runs of each queue run.
    """

    open: Counter[tuple[str, str]] = field(default_factory=Counter)
    waiting: Counter[str] = field(default_factory=Counter)
    running: Counter[str] = field(default_factory=Counter)

    def needed(self) -> dict[str, int]:
        """The slots that each queue needs (`core.needed_slots`)."""
        queues = sorted({*self.waiting, *self.running} - {OTHER})
        return {queue: needed_slots(self.running[queue], self.waiting[queue], usual_seconds(queue)) for queue in queues}


def waiting_work(now: datetime) -> WaitingWork:
    """Count, with a bounded number of queries that each read a bounded number of index entries.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    rows: dict[tuple[State, str, bool], list[QuerySet[Any]]] = {}
    for state in sorted(OPEN_STATES):
        found, complete = first_queues(state, MOST_QUEUES)
        parts = {work: SchedulerExecution.objects.filter(state=state.value, queue=work) for work in found}
        if not complete:
            later = {"queue__gt": found[-1]} if found else {}
            parts[OTHER] = SchedulerExecution.objects.filter(state=state.value, **later)
        for work, part in parts.items():
            rows[state, work, False] = [part]
            if state is not State.RUNNING:
                rows[state, work, True] = [part.filter(wake_at__lte=now + AHEAD)]
    work_found = WaitingWork()
    for (state, work, soon), count in counts(rows, MOST_EXECUTIONS).items():
        queue = label(queue_of(work), WORK_QUEUE_LENGTH)
        if soon:
            work_found.waiting[queue] += count.number
        else:
            work_found.open[state.value, queue] += count.number
            if state is State.RUNNING:
                work_found.running[queue] += count.number
    work_found.waiting += _due_soon(now)
    return work_found


NAMES = {type_: type_ if kind.handler else f"{type_}__{kind.name_column}" for type_, kind in TARGET_KINDS.items()}
"""Maps the type of a target to the column of a schedule that says which handler runs."""


def _due_soon(now: datetime) -> Counter[str]:
    """The occurrences of the next minutes, by queue."""
    soon = Scheduler.objects.filter(status=True, next_run_at__gte=FIRST_INSTANT, next_run_at__lte=now + AHEAD)
    columns = ("schedule", "queue", "priority", "stay_alive", *NAMES.values())
    found: Counter[str] = Counter()
    rows = soon.order_by("next_run_at").values_list(*columns)[:MOST_SCHEDULES]
    for expression, queue, priority, service, *names in rows:
        type_, name = next(((type_, str(name)) for type_, name in zip(NAMES, names, strict=True) if name), ("", ""))
        try:
            work = work_queue_of(type_, name, str(queue), str(priority), service=bool(service))
        except QueueInvalid:
            continue  # it cannot be planned
        found[label(queue_of(work), WORK_QUEUE_LENGTH)] += 1 if service else due_ahead(str(expression or ""), now)
    return found


def usual_seconds(queue: str) -> float:
    """How long a run of the queue took lately, on average."""
    rows = Tally.objects.filter(queue=queue, attempts__gt=0).order_by("-pk")  # skipped occurrences have no attempts
    newest = list(rows.values_list("attempts", "milliseconds")[:TALLIES])
    usable = [(attempts, spent) for attempts, spent in newest if type(attempts) is int and type(spent) is int]
    attempts = sum(count for count, _spent in usable)
    return sum(spent for _count, spent in usable) / 1_000 / attempts if attempts > 0 else UNKNOWN_SECONDS
