"""Decides which executions retention removes, and how large a batch of removals is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from scheduling.core.lifecycle import ENDED, State
from scheduling.core.words import gettext as _

DAYS = (1, 36_500)
"""The bounds of an age in the settings, in days."""
KEEP = (1, 1_000_000)
"""The bounds of the number of executions to keep, in the settings."""
OWN = (1, 32_767)
"""The bounds of a schedule's own values. Every database can store these numbers in a small integer."""


class RetentionInvalid(ValueError):
    """A value of a retention policy is out of bounds. `field` names the attribute of `RetentionPolicy`."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class Rule(StrEnum):
    """Why retention removes something."""

    SUCCESS = "success"
    """The execution succeeded long ago."""
    ENDED = "ended"
    """The execution was cancelled, discarded or skipped long ago."""
    FAILED = "failed"
    """The execution failed long ago, and an age of failures is set."""
    COUNT = "count"
    """The schedule has enough newer executions."""
    OUTPUT = "output"
    """Only the output and the artefacts are removed, because the execution ended long ago."""
    ONE_TIME = "one_time"
    """The schedule had one date and time, and the date has passed long ago."""


@dataclass(frozen=True, slots=True)
class RetentionPolicy:
    """How long executions are kept. Ages are in days since the end of the execution. None means: for ever.

    Args:
        success_days: the age of executions that succeeded.
        ended_days: the age of executions that were cancelled, discarded or skipped.
        failed_days: the age of executions in the failed inbox.
        output_days: the age of output and artefacts, if it is shorter than the age of the execution.
        count: how many executions are kept for each schedule.
    """

    success_days: int | None = 30
    ended_days: int | None = 30
    failed_days: int | None = None
    output_days: int | None = None
    count: int | None = None

    def with_own(self, own: Mapping[str, object]) -> RetentionPolicy:
        """This policy with a schedule's own values.

        Args:
            own: maps attributes to values. The value None is inherited from this policy.

        Raises:
            RetentionInvalid: a value is no whole number within `OWN`. (SQLite stores any type in any column.)
        """
        given: dict[str, int] = {}
        for name, value in own.items():
            if value is None:
                continue
            if type(value) is not int or not OWN[0] <= value <= OWN[1]:
                said = _("It must be a whole number from {low} to {high}, not {value}.")
                raise RetentionInvalid(name, said.format(low=OWN[0], high=OWN[1], value=f"{value!s:.50}"))
            given[name] = value
        return replace(self, **given) if given else self

    @property
    def shortest_days(self) -> int | None:
        """The shortest age after which an execution that has ended is removed; None if there is no age."""
        return min((days for days in (self.success_days, self.ended_days) if days is not None), default=None)


KEEP_ALL = RetentionPolicy(None, None)
"""The policy that removes nothing. It applies to a schedule with an unusable value."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What `rule_for` needs to know about an execution. The times are aware; None if a time is unknown."""

    state: str
    finished_at: datetime | None
    executed_at: datetime | None
    scheduled_at: datetime | None


def protected_from(now: datetime, catch_up: timedelta) -> datetime:
    """The instant from which on nothing is removed: an occurrence in the catch-up window could be claimed again."""
    return now - catch_up


def rule_for(
    facts: Facts, policy: RetentionPolicy, now: datetime, catch_up: timedelta, enough: bool = False
) -> Rule | None:
    """The rule that removes an execution, its output or nothing (None).

    An execution that waits or runs, or whose state is unknown, is always kept. An execution is kept, too, if one of its
    times is unknown or within the catch-up window, even if the time lies in the future. A failure is removed only by
    the age of failures. A count does not remove a failure.

    Args:
        enough: whether the schedule has at least `policy.count` newer executions.
    """
    times = (facts.finished_at, facts.executed_at, facts.scheduled_at)
    known = [instant for instant in times if instant is not None]
    if facts.finished_at is None or len(known) < len(times) or max(known) > protected_from(now, catch_up):
        return None
    if facts.state == State.FAILED.value:
        return Rule.FAILED if _is_over(facts.finished_at, policy.failed_days, now) else None
    if facts.state not in ENDED:
        return None
    success = facts.state == State.SUCCEEDED.value
    if _is_over(facts.finished_at, policy.success_days if success else policy.ended_days, now):
        return Rule.SUCCESS if success else Rule.ENDED
    if enough and policy.count is not None:
        return Rule.COUNT
    return Rule.OUTPUT if _is_over(facts.finished_at, policy.output_days, now) else None


def _is_over(finished_at: datetime, days: int | None, now: datetime) -> bool:
    return days is not None and finished_at < now - timedelta(days=days)


TARGET_SECONDS = 0.015
"""How long a batch should take. No batch should take longer than 0.1 s, and on a busy server a batch may take several
times as long as the one before."""
SMALLEST, LARGEST = 10, 500
"""The bounds of the number of executions in a batch."""


def next_batch(size: int, seconds: float) -> int:
    """The size of the next batch, after a batch of `size` executions took `seconds`.

    A batch grows slowly. If a batch was too slow, the next one is smaller at once.
    """
    factor = min(1.5, TARGET_SECONDS / max(seconds, 0.001))
    return max(SMALLEST, min(LARGEST, int(size * factor)))
