"""Holds the executions against what was due by the revisions of the schedules (`core.occurrence_audit`)."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q
from django.utils.translation import gettext as _

from scheduling.conf import get_conf
from scheduling.core.due_history import Times, expected, last_counted
from scheduling.core.known_sentences import for_reader
from scheduling.core.lifecycle import OCCURRENCES
from scheduling.core.occurrence_audit import Counting, Fault, Need, faults, instant_of, micros
from scheduling.core.retention import RetentionInvalid
from scheduling.core.skip_reasons import SkipReason, kind_of
from scheduling.core.text import visible_text
from scheduling.execution.retention.policies import edge_of
from scheduling.models import Scheduler, ScheduleRevision, SchedulerExecution
from scheduling.models.own_retention import RETENTION_COLUMNS
from scheduling.models.schedule_revision import RevisionKind
from scheduling.processes.database import is_away

IN_A_ROW = frozenset({
    SkipReason.PAUSED, SkipReason.NO_PRODUCER, SkipReason.TOO_LATE, SkipReason.RESTORED, SkipReason.CONFIRMED,
})  # fmt: skip
"""The reasons of skipped rows that count each occurrence from their first to their last one. The row of a run that was
not over may leave out some between them."""

BESIDE_EXCLUDED = frozenset({SkipReason.NO_PRODUCER, SkipReason.TOO_LATE})
"""Those of them that leave out what a calendar has excluded between them. It has rows of its own."""

SCHEDULES_PER_QUERY = 50
ROWS_PER_QUERY = 20_000
MOST_FAULTS = 1_000
"""At most so many faults of one schedule are named. All are counted."""

_TICK = timedelta(microseconds=1)
_COLUMNS = ("pk", "name", "description", "status", "next_run_at", "next_nominal_at", "plan_error", "keep_count")


@dataclass
class Audited:
    """What the audit of one schedule has found.

    Args:
        since, until: the occurrences after and up to these instants were looked at; None if none was.
        due: how many instants were due.
        rows: how many rows were read.
        faults: the first faults, in the order of their instants.
        count: how many faults there are.
        note: why less was looked at than was asked for.
    """

    pk: int
    name: str
    since: datetime | None = None
    until: datetime | None = None
    due: int = 0
    rows: int = 0
    faults: list[tuple[Fault, datetime]] = field(default_factory=list)
    count: int = 0
    note: str = ""

    def add(self, fault: Fault, instant: datetime) -> None:
        """Note a fault."""
        self.count += 1
        if len(self.faults) < MOST_FAULTS:
            self.faults.append((fault, instant))


def audit_schedules(
    now: datetime, since: datetime | None = None, until: datetime | None = None, only: Collection[int] | None = None
) -> Iterator[Audited]:
    """Audit the schedules one by one, in the order of their ids.

    What retention has removed, what was due before the first revision, and what no producer has claimed yet is left
    out.

    Args:
        since, until: look at the occurrences after and up to these instants; None: as far as they can be known.
        only: the ids of the schedules; None: all.

    Raises:
        django.db.DatabaseError: the database is away.
    """
    after = 0
    rows = Scheduler.objects.all() if only is None else Scheduler.objects.filter(pk__in=list(only))
    while keys := list(rows.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[:SCHEDULES_PER_QUERY]):
        after = keys[-1]
        histories = _histories(keys)
        for pk in keys:
            yield _audit_safely(_Asked(pk, histories.get(pk, []), now, since, until))


@dataclass(frozen=True)
class _Asked:
    """What is asked about one schedule.

    Args:
        history: the times that it has had, ascending.
    """

    pk: int
    history: list[Times]
    now: datetime
    since: datetime | None
    until: datetime | None


def _histories(keys: Sequence[int]) -> dict[int, list[Times]]:
    """The times that the schedules have had. A schedule with a revision that cannot be read is left out."""
    found: dict[int, list[Times]] = {}
    try:
        for row in ScheduleRevision.objects.filter(schedule__in=keys).order_by("schedule", "number").iterator(500):
            state = row.snapshot.state
            is_active = state.get("status") is True and row.kind != RevisionKind.DELETED
            times = Times(row.number, row.at, state, row.zone, is_active, row.unsure_from)
            found.setdefault(row.schedule, []).append(times)
    except Exception as error:
        if is_away(error):
            raise
        if len(keys) == 1:
            return {}
        return {pk: times for key in keys for pk, times in _histories([key]).items()}
    return found


def _audit_safely(asked: _Asked) -> Audited:
    try:
        return _audit(asked)
    except Exception as error:
        if is_away(error):
            raise
        said = visible_text(f"{type(error).__name__}: {error}", 300)
        return Audited(asked.pk, str(asked.pk), note=_("It cannot be read: %(error)s") % {"error": said})


def _audit(asked: _Asked) -> Audited:
    pk, history = asked.pk, asked.history
    # The first instant that is not on record is read before the rows: what a producer claims meanwhile is left out.
    row = Scheduler.objects.filter(pk=pk).values(*_COLUMNS).first()
    if row is None or not history:
        return Audited(pk, str(pk), note=_("It has no revision, so nothing tells when it was due."))
    found = Audited(pk, visible_text(row["name"] or row["description"] or pk, 120))
    start, end = _start(asked, row["keep_count"], found), _end(asked, row["next_nominal_at"] or row["next_run_at"])
    if start >= end:
        return found
    begin, (rows, counting) = start, _rows(pk, start, end, history)
    former = [instant_of(one.first) - _TICK for one in counting if one.last is None]
    if former and (earlier := max(min(former), history[0].at)) < start:
        # A row still counts occurrences from before. How many of them are over tells only the time before.
        begin, (rows, counting) = earlier, _rows(pk, earlier, end, history)
    if row["plan_error"] and row["status"]:
        end = min(end, max(instant_of(rows[-1]) if rows else start, history[-1].at))
        said = _("It is set aside, so nothing was due after its last execution: %(error)s")
        found.note = said % {"error": for_reader(row["plan_error"], 300)}
    found.since, found.until, found.rows = start, end, len(rows)
    due = _Due(expected(history, begin, end))
    lower, upper = micros(start), micros(end)
    for fault, instant in faults(due, rows, counting):
        if lower < instant <= upper:
            found.add(fault, instant_of(instant))
    found.due = due.number
    return found


def _start(asked: _Asked, keep_count: Any, found: Audited) -> datetime:
    """The instant after which the occurrences are known and asked for."""
    first = asked.history[0].at
    known = max(first, _kept_since(asked, keep_count) or first)
    if asked.since is not None and asked.since < known:
        found.note = _("Retention, or the first revision, tells nothing of what was due before.")
    return max(known, asked.since or known)


def _end(asked: _Asked, first: datetime | None) -> datetime:
    """The last instant that is asked for, and that producers have passed."""
    end = min(asked.now, asked.until or asked.now)
    return end if first is None else min(end, first - _TICK)


class _Due:
    """Counts the instants that must be on record while they are read."""

    def __init__(self, instants: Iterator[tuple[int, Need]]) -> None:
        self._instants, self.number = instants, 0

    def __iter__(self) -> Iterator[tuple[int, Need]]:
        for instant, need in self._instants:
            self.number += need is Need.MUST
            yield instant, need


def _rows(pk: int, after: datetime, until: datetime, history: list[Times]) -> tuple[Sequence[int], list[Counting]]:
    """The instants of the rows in (after, until], ascending, and the rows that count several occurrences."""
    own = SchedulerExecution.objects.filter(scheduler=pk, trigger__in=OCCURRENCES, scheduled_at__lte=until)
    own = own.filter(Q(scheduled_at__gt=after) | Q(missed__gt=1)).order_by("pk")
    instants, several, last = array("q"), list[int](), 0
    lower = micros(after)
    while True:
        page = list(own.filter(pk__gt=last).values_list("pk", "scheduled_at", "missed")[:ROWS_PER_QUERY])
        for last, scheduled_at, missed in page:
            instant = micros(scheduled_at)
            if instant > lower:
                instants.append(instant)
            if missed > 1:
                several.append(last)
        if len(page) < ROWS_PER_QUERY:
            break
    return sorted(instants), sorted(_counting(several, history), key=lambda one: one.first)


def _counting(keys: Sequence[int], history: list[Times]) -> Iterator[Counting]:
    by_number = {times.number: times for times in history}
    for place in range(0, len(keys), 500):
        rows = SchedulerExecution.objects.filter(pk__in=keys[place : place + 500])
        for first, count, reason, revision in rows.values_list("scheduled_at", "missed", "reason", "revision"):
            kind = kind_of(reason)
            times = by_number.get(revision or 0)
            last = None
            if times is not None and _is_in_a_row(kind, times):
                last = last_counted(history, times, first, count)
            yield Counting(micros(first), last, count)


def _is_in_a_row(kind: SkipReason | None, times: Times) -> bool:
    """Whether a row with this reason counts each occurrence from its first to its last one."""
    return kind in IN_A_ROW and not (kind in BESIDE_EXCLUDED and times.state.get("calendar_id") is not None)


def _kept_since(asked: _Asked, keep_count: Any) -> datetime | None:
    """Retention removes nothing that was due after this instant; None if it removes nothing at all."""
    base, ages, none = get_conf().retention(), list[int](), dict[str, Any]()
    for own in (none, *(times.state for times in asked.history)):
        try:
            policy = base.with_own({attribute: own.get(column) for column, attribute in RETENTION_COLUMNS.items()})
        except RetentionInvalid:
            continue
        ages += [days for days in (policy.success_days, policy.ended_days, policy.failed_days) if days is not None]
    edges = [asked.now - timedelta(days=min(ages))] if ages else []
    count = keep_count or base.count
    if count is not None and (edge := edge_of(asked.pk, count)) is not None:
        edges += SchedulerExecution.objects.filter(pk=edge).values_list("executed_at", flat=True)
    return max(edges, default=None)
