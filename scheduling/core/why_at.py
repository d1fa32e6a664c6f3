"""Decides why a schedule did or did not run at an instant. The caller looks up the facts; this module has the rule."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum, auto

from scheduling.core.cron import Cron, CronError, last_between, next_after

_LOOK_BACK = timedelta(days=366 * 8 + 2)
"""The longest time between two occurrences of a cron schedule is eight years: 29 February around the year 1900."""


class Answer(StrEnum):
    """The answers to the question "why (not) at this instant?". Scripts compare the values, so they never change."""

    RECORDED = auto()
    """An execution is on record: it ran, runs, waits, or was skipped with a reason."""
    LEFT_OUT = auto()
    """A skipped execution counts this occurrence among others: an outage or a pause left it out."""
    WILL_RUN = auto()
    """The instant is in the future, and the schedule is due then."""
    WILL_BE_LEFT_OUT = auto()
    """The instant is in the future, and the schedule is due then, but it is paused."""
    NOT_CREATED = auto()
    """The schedule was created later."""
    OTHER_TIMES = auto()
    """The schedule got its present times later, or was active for the first time later."""
    NOT_DUE = auto()
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
        at: the instant, a whole minute.
        due: whether the present times of the schedule have an occurrence at `at`.
        recorded: whether an execution of this occurrence exists.
        counted: whether a skipped execution spans `at`, and counts more than one occurrence.
        active: whether the schedule is active.
        planned_at: since when it has its present times; None if that is unknown.
        paused_at: since when it is paused; None if it is active, or if that is unknown.
        next_run_at: the next occurrence that a producer will claim; None if there is none.
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
        return Answer.NOT_DUE
    return Answer.WILL_RUN if facts.active else Answer.WILL_BE_LEFT_OUT


def _present_times(facts: Facts) -> Answer:
    """The answer for an instant in the past at which the schedule already had its present times."""
    if not facts.due:
        return Answer.NOT_DUE
    if facts.next_run_at is not None and facts.next_run_at <= facts.at:
        return Answer.WAITS
    if not facts.active and (facts.paused_at is None or facts.paused_at <= facts.at):
        return Answer.PAUSED
    return Answer.NO_RECORD


def is_due(cron: Cron, tz: str, at: datetime) -> bool:
    """Whether the expression fires at this instant. Raises the errors of `next_after`, but no CronError."""
    try:
        return next_after(cron, tz, at - timedelta(microseconds=1)) == at
    except CronError:
        return False


def neighbours(cron: Cron, tz: str, at: datetime) -> tuple[datetime | None, datetime | None]:
    """The last occurrence before `at` and the first one after it, in UTC; None if there is none within eight years."""
    before = last_between(cron, tz, at - _LOOK_BACK, at - timedelta(microseconds=1))
    try:
        return before, next_after(cron, tz, at)
    except CronError:
        return before, None
