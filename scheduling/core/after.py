"""Decides whether an occurrence may start that waits for another schedule, its predecessor.

The *span* of an occurrence is (after, due]: its local day up to its due instant, or the time since the occurrence
before it. It waits for the last occurrence of the predecessor in this span, the *awaited* one. If there is none, there
is nothing to wait for. It starts as soon as the predecessor has succeeded, which is one of these:

- the awaited occurrence has succeeded, in its first attempt, in a retry, or after an operator republished it;
- its handler has found that there was nothing to do (`when`), so the work of the predecessor is done;
- a later execution of the predecessor has succeeded: a later occurrence, or a run that a user or code asked for;
- the awaited occurrence was left out because an earlier run was not over, and this run has succeeded since.

In each other case it waits until its latest time: the awaited occurrence waits, runs, has failed, was cancelled or
discarded, was missed, or fell into a pause. It may still be republished or run by hand. An occurrence that a calendar
has left out counts as never due.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from enum import StrEnum
from typing import TypeVar

from scheduling.core import after_sentences as say
from scheduling.core.cron import Timetable, last_between, zone
from scheduling.core.lifecycle import OPEN_STATES, State
from scheduling.core.skip_reasons import SkipReason
from scheduling.core.zones import require_aware, resolve

WITHIN_SECONDS = (60, 7 * 86_400)
"""The bounds of the time for which an occurrence waits."""
DEFAULT_WITHIN = 12 * 3_600

LONGEST_CHAIN = 20
"""So many schedules may wait for each other in a row."""

FIRST_LOOK = timedelta(seconds=15)
LAST_LOOK = timedelta(minutes=5)
"""A waiting occurrence is looked at again after a twentieth of the time that it has waited, within these bounds. That
matters only if the process died that recorded the success of the predecessor, or did not know yet who waits."""

BY_CALENDAR = "excluded"
"""The kind of a skip that says: on this day, the schedule was not due."""

_INSTANT = timedelta(microseconds=1)
_LONG_AGO = timedelta(days=8 * 366)
"""Each cron expression that fires again after a leap day has fired within this time."""


Key = TypeVar("Key", bound=Hashable)


class Span(StrEnum):
    """Which occurrences of the predecessor count."""

    DAY = "day"
    """Those of the same local day, in the zone of the schedule that waits, up to the due instant."""
    PREVIOUS = "previous"
    """Those since the occurrence before, in the times of the schedule that waits."""


class Late(StrEnum):
    """What happens at the latest time if the predecessor has not succeeded."""

    SKIP = "skip"
    RUN = "run"
    FAIL = "fail"


@dataclass(frozen=True)
class Run:
    """An execution of the predecessor.

    Args:
        at: its due instant; for a run that a user asked for, when that was.
        until: the last occurrence that it stands for, if it stands for several; otherwise `at`.
        is_occurrence: whether the times of the schedule have caused it.
        skip: why it was skipped; None if it was not.
        finished_at: None if it has not ended.
    """

    id: int
    at: datetime
    until: datetime
    state: State
    is_occurrence: bool
    skip: SkipReason | None = None
    finished_at: datetime | None = None

    def covers(self, instant: datetime) -> bool:
        """Whether the execution may record the occurrence of this instant. Up to which one it counts is not known
        exactly: others may have executions of their own, or may not be on record yet."""
        return self.is_occurrence and (
            self.at == instant or (self.skip is not None and self.at < instant <= self.until)
        )


@dataclass(frozen=True)
class Predecessor:
    """What is known of the predecessor.

    Args:
        runs: its executions in the span, those after it, and the one before a run that was left out; in any order.
        planned: its last occurrence in the span by its present times, whether or not it is on record.
        pending: its first occurrence that is not on record; None if it has none. A row that counts several occurrences
            counts none from this one on.
        paused: whether it is paused.
        problem: why its times or executions cannot be read; empty if they can.
    """

    runs: Sequence[Run]
    planned: datetime | None = None
    paused: bool = False
    problem: str = ""
    pending: datetime | None = None

    def records_of(self, instant: datetime) -> list[Run]:
        """The executions that record the occurrence of an instant: its own one, or those that count it."""
        own = [run for run in self.runs if run.is_occurrence and run.at == instant]
        if own or (self.pending is not None and instant >= self.pending):
            return own
        return [run for run in self.runs if run.covers(instant)]


@dataclass(frozen=True)
class Start:
    """The occurrence may start."""


@dataclass(frozen=True)
class Wait:
    """The occurrence waits.

    Args:
        awaited: the occurrence of the predecessor; None if its times cannot be read.
        what: what has become of it, as the end of a sentence: "its run of 02:00 " + "is running as execution 991".
        look_at: when to look again.
    """

    awaited: datetime | None
    what: str
    look_at: datetime


@dataclass(frozen=True)
class TooLate:
    """The latest time has come. See `Wait`."""

    late: Late
    awaited: datetime | None
    what: str


def span_start(span: Span, due: datetime, tz: str, timetable: Timetable | None) -> datetime:
    """The instant, in UTC, after which the span of an occurrence begins.

    Args:
        tz, timetable: the zone and the times of the schedule that waits. None: it has one date, so that no occurrence
            is before this one, and the whole past counts.

    Raises:
        ValueError: `due` is naive.
        ZoneError: there is no such zone.
    """
    due = require_aware(due)
    if span is Span.DAY:
        info = zone(tz)
        return resolve(datetime.combine(due.astimezone(info).date(), time()), info) - _INSTANT
    long_ago = due - _LONG_AGO
    return long_ago if timetable is None else last_between(timetable, tz, long_ago, due - _INSTANT) or long_ago


def waits_since(due: datetime, assigned: datetime | None, claimed: datetime) -> datetime:
    """Since when an occurrence waits: when it could first have started.

    A spread, a hold and a time without a producer come before its wait. They leave it the whole time to wait, so that
    it is never left out before it has waited.

    Args:
        due: its due instant.
        assigned: when it was to start; None if that was its due instant.
        claimed: when a producer made its execution.
    """
    return max(assigned or due, claimed)


def decide(
    due: datetime, after: datetime, since: datetime, latest: datetime, late: Late, known: Predecessor, now: datetime
) -> Start | Wait | TooLate:
    """Whether an occurrence may start.

    Args:
        due: its due instant.
        after: the beginning of its span (`span_start`).
        since, latest: since when it waits (`waits_since`), and until when.
    """
    awaited = _awaited(after, due, known)
    # If it is not known whether the predecessor was due, any success in the span will do.
    from_ = awaited or (after + _INSTANT if known.problem else None)
    if from_ is None or _has_succeeded(from_, known):
        return Start()
    what = _standing(from_, known)
    if now >= latest:
        return TooLate(late, awaited, what)
    return Wait(awaited, what, min(look_again(since, now), latest))


def look_again(since: datetime, now: datetime) -> datetime:
    """When to look again at an occurrence that waits since then."""
    return now + min(max((now - since) / 20, FIRST_LOOK), LAST_LOOK)


def _awaited(after: datetime, due: datetime, known: Predecessor) -> datetime | None:
    """The instant of the awaited occurrence; None if there is nothing to wait for."""
    instants = {run.at for run in known.runs if run.is_occurrence}
    if known.planned is not None:
        instants.add(known.planned)
    in_span = sorted((at for at in instants if after < at <= due), reverse=True)
    return next((at for at in in_span if not any(run.skip == BY_CALENDAR for run in known.records_of(at))), None)


def _has_succeeded(awaited: datetime, known: Predecessor) -> bool:
    if any(run.at >= awaited and _is_success(run) for run in known.runs):
        return True
    left_out = any(run.skip is SkipReason.OVERLAP for run in known.records_of(awaited))
    return left_out and any(
        _is_success(run) and run.finished_at is not None and run.finished_at >= awaited for run in known.runs
    )


def _is_success(run: Run) -> bool:
    return run.state is State.SUCCEEDED or run.skip is SkipReason.NOT_NEEDED


def _standing(awaited: datetime, known: Predecessor) -> str:
    """Why the predecessor has not succeeded."""
    if going_on := [run for run in known.runs if run.at >= awaited and run.state in OPEN_STATES]:
        run = max(going_on, key=lambda one: one.id)
        doing = {State.RUNNING: say.IS_RUNNING, State.RETRYING: say.WAITS_FOR_ATTEMPT}
        return doing.get(run.state, say.WAITS_TO_START).format(execution=run.id)
    if of_it := known.records_of(awaited):
        run = max(of_it, key=lambda one: one.id)
        if run.skip is not None:
            return say.WAS_SKIPPED.format(execution=run.id)
        ends = {
            State.FAILED: say.HAS_FAILED,
            State.CANCELLED: say.WAS_CANCELLED,
            State.DISCARDED: say.WAS_DISCARDED,
        }
        return ends.get(run.state, say.DID_NOT_SUCCEED).format(execution=run.id)
    if known.problem:
        return say.NOT_JUDGED.format(problem=known.problem.rstrip("."))
    return (say.PAUSED_THEN if known.paused else say.NOT_CLAIMED).format()


def chain(first: Key, second: Key, next_of: Callable[[Key], Key | None]) -> list[Key]:
    """The schedules that a schedule would wait for, one behind the other. The walk is bounded.

    Args:
        first: the id or the name of the schedule that waits; 0 if it is not stored yet.
        second: its predecessor.
        next_of: returns the predecessor of a schedule; None if it has none.

    Returns:
        The schedules, from `first` on. If the last one stands there twice, they are a circle. If there are more than
        `LONGEST_CHAIN`, the chain is too long.
    """
    found, at = [first], second
    while len(found) <= LONGEST_CHAIN:
        found.append(at)
        if at in found[:-1]:
            break
        following = next_of(at)
        if following is None:
            break
        at = following
    return found


def is_circle(found: Sequence[Key]) -> bool:
    """Whether a `chain` ends where it has been before."""
    return found[-1] in found[:-1]
