"""Decides why a schedule did or did not run at an instant. The caller looks up the facts; this module has the rule."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum, auto

from scheduling.core.cron import CronError, Timetable, last_between, next_after
from scheduling.core.expected import Fate
from scheduling.core.interval_dialect import LONGEST_DAYS
from scheduling.core.skip_reasons import SkipReason, calendar_words, kind_of

LOOK_BACK = timedelta(days=LONGEST_DAYS + 2)
"""The longest time between two occurrences of a schedule: that of an interval. With a cron expression it is eight
years: 29 February around the year 1900."""


class Answer(StrEnum):
    """The answers to the question "why (not) at this instant?". Scripts compare the values, so they never change."""

    RECORDED = auto()
    """An execution is on record: it ran, runs, waits, or was skipped with a reason."""
    LEFT_OUT = auto()
    """A skipped execution counts this occurrence among others: an outage or a pause left it out."""
    WILL_RUN = auto()
    """The instant is in the future, and the schedule is due then."""
    WILL_BE_EXCLUDED = auto()
    """The instant is in the future, and the schedule is due then, but a calendar excludes it."""
    EXCLUDED = auto()
    """A calendar excludes it. It is put on record with the next run."""
    HELD = auto()
    """It fell due, and a calendar holds it."""
    SPREAD = auto()
    """It fell due, and starts later, because its schedule is spread."""
    WILL_BE_LEFT_OUT = auto()
    """The instant is in the future, and the schedule is due then, but it is paused."""
    NOT_CREATED = auto()
    """The schedule was created later."""
    OTHER_TIMES = auto()
    """The schedule got its present times later, or was active for the first time later."""
    NOT_DUE = auto()
    OUTSIDE = auto()
    """It would be due then, but the schedule is active only from or until another instant."""
    PAUSED = auto()
    """The schedule is paused since before the instant. The pause is recorded when it ends."""
    WAITS = auto()
    """It fell due, and no producer has claimed it yet."""
    NO_RECORD = auto()
    """It was due, and nothing is on record any more: history was deleted."""


@dataclass(frozen=True)
class Facts:
    """What is known of a schedule about an instant. All instants are aware.

    Args:
        at: the instant, a whole minute, or a whole second for an interval that counts seconds.
        due: whether the present times of the schedule have an occurrence at `at`.
        outside: whether they would have one if the schedule were active then: its bounds leave it out.
        recorded: whether an execution of this occurrence exists.
        counted: whether a skipped execution spans `at`, and counts more than one occurrence.
        active: whether the schedule is active.
        planned_at: since when it has its present times; None if that is unknown.
        paused_at: since when it is paused; None if it is active, or if that is unknown.
        next_run_at: the nominal instant of the next occurrence that a producer will claim; None if there is none.
        fate: what becomes of the occurrence at `at`, if the schedule has rules of its own and is due then.
        starts_at: when this occurrence starts; None if it does not, or if the schedule has no rules of its own.
    """

    at: datetime
    now: datetime
    due: bool
    recorded: bool
    counted: bool
    active: bool
    created_at: datetime
    planned_at: datetime | None = None
    paused_at: datetime | None = None
    next_run_at: datetime | None = None
    fate: Fate | None = None
    starts_at: datetime | None = None
    outside: bool = False


def answer(facts: Facts) -> Answer:
    """Why the schedule did or did not run at the instant. What is on record comes before what can be computed."""
    if facts.recorded:
        return Answer.RECORDED
    if facts.at > facts.now:
        return _future(facts)
    other_times = facts.planned_at is not None and facts.at <= facts.planned_at
    if facts.counted and (facts.due or other_times):
        return Answer.LEFT_OUT
    if facts.at < facts.created_at:
        return Answer.NOT_CREATED
    return Answer.OTHER_TIMES if other_times else _present_times(facts)


def _future(facts: Facts) -> Answer:
    if not facts.due:
        return _not_due(facts)
    if not facts.active:
        return Answer.WILL_BE_LEFT_OUT
    return Answer.WILL_BE_EXCLUDED if facts.fate is Fate.EXCLUDED else Answer.WILL_RUN


def _present_times(facts: Facts) -> Answer:
    """The answer for an instant in the past at which the schedule already had its present times."""
    if not facts.due:
        return _not_due(facts)
    if facts.next_run_at is not None and facts.next_run_at <= facts.at:
        return _pending(facts)
    if not facts.active and (facts.paused_at is None or facts.paused_at <= facts.at):
        return Answer.PAUSED
    return Answer.NO_RECORD


def _not_due(facts: Facts) -> Answer:
    return Answer.OUTSIDE if facts.outside else Answer.NOT_DUE


def _pending(facts: Facts) -> Answer:
    """The answer if it fell due, and is not on record."""
    if facts.fate is Fate.EXCLUDED:
        return Answer.EXCLUDED
    if facts.fate is Fate.HELD and (facts.starts_at is None or facts.starts_at > facts.now):
        return Answer.HELD
    spread = facts.fate is Fate.RUNS and facts.starts_at is not None and facts.starts_at > facts.now
    return Answer.SPREAD if spread else Answer.WAITS


def nearness(reason: str, why: str | None) -> int:
    """How well the reason of a skipped execution that spans an instant fits to what the calendar says about it.

    After a time without a producer, several such executions may span the same instant: one for each reason.

    Args:
        why: what the calendar of the schedule says about the instant; empty if it says nothing, None if it is unknown.
    """
    by_calendar = kind_of(reason) in (SkipReason.EXCLUDED, SkipReason.HELD)
    if why is None:
        return 0
    if not why:
        return int(not by_calendar)
    return by_calendar + (by_calendar and calendar_words(why) in reason)


def is_due(timetable: Timetable, tz: str, at: datetime) -> bool:
    """Whether the timetable fires at this instant. Raises the errors of `next_after`, but no CronError."""
    try:
        return next_after(timetable, tz, at - timedelta(microseconds=1)) == at
    except CronError:
        return False


def neighbours(timetable: Timetable, tz: str, at: datetime) -> tuple[datetime | None, datetime | None]:
    """The last occurrence before `at` and the first one after it, in UTC; None if there is none within ten years."""
    before = last_between(timetable, tz, at - LOOK_BACK, at - timedelta(microseconds=1))
    try:
        return before, next_after(timetable, tz, at)
    except CronError:
        return before, None
