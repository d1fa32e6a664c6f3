"""Reads what the rule of `core.after` must know, and says in sentences what it decides.

Everything is read from the present rows, so an edit of a schedule also holds for its occurrence that waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import Any, NamedTuple

from scheduling.core import after_sentences as say
from scheduling.core import skip_reasons
from scheduling.core.after import (
    Late,
    Predecessor,
    Run,
    Span,
    Start,
    TooLate,
    Wait,
    decide,
    span_start,
    waits_since,
)
from scheduling.core.calendars import ExclusionCalendar
from scheduling.core.chunks import chunks
from scheduling.core.cron import CronError, ZoneError, last_between, zone
from scheduling.core.last_free import last_free
from scheduling.core.lifecycle import OCCURRENCES, State
from scheduling.core.targets import TARGETS
from scheduling.core.text import visible_text
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.after import NAME_CHARS, is_named_to
from scheduling.models.exclusions import exclusions_of
from scheduling.models.own_timing import has_own_timing
from scheduling.models.timetable import timetable_of
from scheduling.processes.database import is_away
from scheduling.processes.set_aside import savepoint
from scheduling.processes.unusable_values import read

ROWS = (20, 200, 2_000)
"""So many of the newest executions of the predecessor are read: the next number if they do not reach back to the span.
No more are read, so that a predecessor which runs each second costs no more."""

_COLUMNS = ("pk", "scheduled_at", "executed_at", "finished_at", "state", "trigger", "reason", "missed")


class PredecessorUnusable(ValueError):
    """A schedule cannot wait for its predecessor: it is gone, or they are in a circle. Only plain SQL can write it."""


def check_predecessor(row: Scheduler, look_up: Callable[[int], Scheduler | None] | None = None) -> None:
    """Refuse a predecessor that plain SQL has written and that no schedule can wait for. The walk is bounded.

    Args:
        look_up: returns a schedule; by default, a query does.

    Raises:
        PredecessorUnusable: the text says why.
    """
    if row.after_id is not None and (problem := next(iter(row.after_errors(look_up).values()), None)) is not None:
        raise PredecessorUnusable(" ".join(problem.messages))


class Waiting(NamedTuple):
    """The columns of a blocked execution that waits for a predecessor."""

    pk: int
    scheduler_id: int | None
    scheduled_at: datetime
    assigned_at: datetime | None
    executed_at: datetime
    wake_at: datetime
    group_id: int | None

    @property
    def since(self) -> datetime:
        return waits_since(self.scheduled_at, self.assigned_at, self.executed_at)


@dataclass(frozen=True)
class Verdict:
    """What to do with an occurrence.

    Args:
        decided: the decision.
        sentence: the reason for operators; empty for a start.
        waits_for: the id of the predecessor.
    """

    decided: Start | Wait | TooLate
    sentence: str = ""
    waits_for: int | None = None


class Judge:
    """Decides about occurrences. What is read once is used for all occurrences that one judge is asked about."""

    def __init__(self, now: datetime) -> None:
        self._now = now
        self._schedules: dict[int, Scheduler | None] = {}
        self._runs: dict[int, tuple[datetime | None, list[Run], str]] = {}
        """Maps a predecessor to its executions: since when they are complete (None: always), and what is wrong."""

    def load(self, schedules: Iterable[int]) -> None:
        """Read these schedules and their predecessors, with two queries. Those that cannot be read are left out."""
        own = self._load({*schedules})
        self._load({row.after_id for row in own if isinstance(row.after_id, int)})

    def _load(self, keys: set[int]) -> list[Scheduler]:
        found: dict[int, Scheduler] = {}
        for some in chunks(sorted(keys - self._schedules.keys())):
            try:
                with savepoint():
                    found |= Scheduler.objects.select_related(*TARGETS).in_bulk(some)
            except Exception as error:
                if is_away(error):
                    raise
        self._schedules |= found
        return list(found.values())

    def schedule(self, pk: int) -> Scheduler | None:
        """The schedule with this id; None if there is none."""
        if pk not in self._schedules:
            self._schedules[pk] = Scheduler.objects.select_related(*TARGETS).filter(pk=pk).first()
        return self._schedules[pk]

    def verdict(self, own: Scheduler, row: Waiting) -> Verdict:
        """What to do with a blocked occurrence of a schedule.

        Raises:
            PredecessorUnusable: the schedule cannot wait for its predecessor.
            CronError, ZoneError: the times of the schedule cannot be read.
        """
        if own.after_id is None:
            return Verdict(Start())
        if row.wake_at <= row.executed_at:  # it has just been claimed
            check_predecessor(own, self.schedule)
        try:
            with savepoint():
                other = self.schedule(own.after_id)
        except Exception as error:
            if is_away(error):
                raise
            return self._unreadable(own, row)
        if other is None:
            raise PredecessorUnusable(say.NO_SUCH_SCHEDULE.format(schedule=own.after_id))
        due, tz = row.scheduled_at, own.zone_name
        after = span_start(Span(own.after_span), due, tz, timetable_of(own.schedule) if own.schedule else None)
        latest = row.since + timedelta(seconds=own.after_within_seconds)
        known = self._known(other, after, due)
        decided = decide(due, after, row.since, latest, Late(own.after_late), known, self._now)
        if isinstance(decided, Start):
            return Verdict(decided, "", other.pk)
        return Verdict(decided, _said(decided, _why(row, other, decided, zone(tz)), latest, own), other.pk)

    def _unreadable(self, own: Scheduler, row: Waiting) -> Verdict:
        """The predecessor may be mended until the latest time."""
        due, latest = row.scheduled_at, row.since + timedelta(seconds=own.after_within_seconds)
        known = Predecessor((), problem=say.ROW_UNREADABLE.format())
        decided = decide(due, due, row.since, latest, Late(own.after_late), known, self._now)
        assert not isinstance(decided, Start)  # noqa: S101 - nothing has succeeded
        why = say.UNREADABLE_SCHEDULE.format(schedule=own.after_id)
        return Verdict(decided, _said(decided, why, latest, own), own.after_id)

    def _known(self, other: Scheduler, after: datetime, due: datetime) -> Predecessor:
        runs, unreadable = self._runs_of(other.pk, after)
        try:
            planned, problem = last_planned(other, after, due), unreadable or other.plan_error
        except (CronError, ZoneError) as error:
            planned, problem = None, unreadable or str(error)
        return Predecessor(runs, planned, not other.status, problem, _pending(other))

    def _runs_of(self, pk: int, after: datetime) -> tuple[list[Run], str]:
        known = self._runs.get(pk)
        if known is None or (known[0] is not None and known[0] > after):
            known = self._runs[pk] = _read_runs(pk, after)
        return known[1], known[2]


def _pending(other: Scheduler) -> datetime | None:
    """The first occurrence of a schedule that is not on record."""
    return other.next_nominal_at or other.next_run_at


def last_planned(other: Scheduler, after: datetime, until: datetime) -> datetime | None:
    """The last occurrence in (after, until] by the present times of a schedule, or the one that an edit has kept.

    Times that it did not have yet do not count, and neither does what its calendar leaves out. That is put on record
    only with its next run, perhaps days later.

    Raises:
        CronError, ZoneError: its times cannot be read.
    """
    edited_at = other.planned_at or other.created_at
    since = max(after, edited_at)
    calendar: ExclusionCalendar | None = None
    if has_own_timing(other):
        own = other.assigned()
        named = None if own.holds else exclusions_of([other]).get(other.pk)
        calendar = None if named is None else named.usable()
        found = own.times.last(since, until) if calendar is None else last_free(own.times, calendar, since, until)
    elif other.date_time is not None:
        found = other.date_time if since < other.date_time <= until else None
    else:
        found = last_between(timetable_of(other.schedule), other.zone_name, since, until)
    # An occurrence that was due at the edit, and that had not started yet, still runs.
    kept = _pending(other)
    if found is not None or kept is None or not after < kept <= min(until, edited_at):
        return found
    return kept if calendar is None or calendar.blocked(kept) is None else None


def _read_runs(pk: int, after: datetime) -> tuple[datetime | None, list[Run], str]:
    rows = SchedulerExecution.objects.filter(scheduler=pk).order_by("-pk")
    values: list[Any] = []
    for number in ROWS:
        values, error = read(rows[:number], list(_COLUMNS))
        if error is not None:
            return None, [], say.RUNS_UNREADABLE.format(error=visible_text(error, 120))
        if len(values) < number:
            break
        oldest = values[-1][2]
        if isinstance(oldest, datetime) and oldest <= after:
            break
    try:
        found = [_run(*columns) for columns in values]
        found += _before_left_out(rows, found)
    except (ValueError, TypeError, AttributeError) as error:
        return None, [], say.RUNS_UNREADABLE.format(error=visible_text(error, 120))
    complete = None if len(values) < number else after
    return complete, found, ""


def _before_left_out(rows: Any, found: list[Run]) -> list[Run]:
    """The run that was not over when the oldest of these occurrences was left out."""
    left_out = [run for run in found if run.skip is skip_reasons.SkipReason.OVERLAP]
    if not left_out or any(run.id < left_out[-1].id and run.skip is None for run in found):
        return []
    before = rows.filter(pk__lt=left_out[-1].id).exclude(state=State.SKIPPED.value)
    return [_run(*columns) for columns in before.values_list(*_COLUMNS)[:1]]


def _run(
    pk: int,
    at: datetime,
    claimed: datetime,
    finished: datetime | None,
    state: str,
    trigger: str,
    reason: str,
    missed: int,
) -> Run:
    if not isinstance(at, datetime) or not isinstance(claimed, datetime):
        raise ValueError(f"the times of execution {pk}")  # plain SQL has written them
    is_skipped = state == State.SKIPPED.value
    return Run(
        pk, at, max(at, claimed) if is_skipped and missed > 1 else at, State(state), trigger in OCCURRENCES,
        skip_reasons.kind_of(reason) if is_skipped else None, finished,
    )  # fmt: skip


def _why(row: Waiting, other: Scheduler, decided: Wait | TooLate, info: tzinfo) -> str:
    """For what an occurrence waits, and what has become of that. All who see the occurrence read it."""
    if not is_named_to(other, row.group_id):
        return say.OF_OTHER_GROUP.format()
    facts = {"name": visible_text(other, NAME_CHARS), "schedule": other.pk, "what": decided.what}
    if decided.awaited is None:
        return say.RUN.format(**facts)
    at = decided.awaited.astimezone(info)
    return say.RUN_OF.format(**facts, at=f"{at:%Y-%m-%d %H:%M} {at.tzname()}")


def _said(decided: Wait | TooLate, why: str, latest: datetime, own: Scheduler) -> str:
    if isinstance(decided, Wait):
        return say.WAITS.format(why=why)
    if decided.late is Late.RUN:
        return say.STARTED_AT_LATEST.format(why=why)
    return skip_reasons.predecessor_late(latest, why, zone(own.zone_name))
