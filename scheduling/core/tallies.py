"""Tallies: how many attempts ended in an hour, by schedule, target, queue, group, outcome, duration and reason."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from scheduling.core.events import WORKER as EVENT
from scheduling.core.outcome import FAILING, Skipped
from scheduling.core.queues import queue_of
from scheduling.core.skip_reasons import SkipReason
from scheduling.core.text import one_line, visible_text

BOUNDS = (1, 5, 10, 30, 60, 300, 600, 1_800, 3_600, 21_600)
"""The upper bounds of the duration buckets, in seconds. The last bucket, `len(BOUNDS)`, has no bound."""

LONGEST = 10 * 366 * 86_400
"""The longest duration that is counted, in seconds. Plain SQL can write any instants."""

SETTLED = timedelta(minutes=1)
"""Attempts may commit out of the order of their keys. After so long, each of them has committed or never will."""

TYPE_CHARS, TARGET_CHARS, QUEUE_CHARS, OUTCOME_CHARS, REASON_CHARS = 20, 150, 50, 16, 100
"""The columns of a tally hold so many characters."""

MOST_TARGETS = 200
"""So many targets have totals of their own. All others share the totals of `OTHER`, so there is a bound."""

MOST_REASONS = 50
"""So many reasons of an hour have tallies of their own. All others share `OTHER`, because code can make any number."""

LONGEST_CACHED = 200

OTHER = "other"
UNREADABLE = "unreadable"
"""The type, the target or the outcome of an attempt whose row cannot be read."""

NO_LISTENER = '{"listeners": 0}'
"""The result of the worker `event` for an event without a listener."""

LARGEST = 2**63 - 1
"""The largest number that a column holds."""


@dataclass(frozen=True, slots=True)
class Series:
    """What an attempt is counted under.

    Args:
        hour: the UTC hour in which the attempt ended.
        schedule: the id of its schedule, which may be deleted; None if it has none.
        group: the id of the group that sees it; None if everyone does.
        queue: the queue, without a priority.
        bucket: the place of its duration in `BOUNDS`.
        reason: the class of the error of a failed attempt, or a `SkipReason`; empty for all others.
    """

    hour: datetime
    schedule: int | None
    type: str
    target: str
    queue: str
    group: int | None
    outcome: str
    bucket: int
    reason: str = ""

    @property
    def key(self) -> str:
        """Identifies the series: 64 hexadecimal digits. Databases compare texts without case and accents."""
        columns = columns_of(self)
        return digest(columns.pop("hour").isoformat(), *columns.values())


@dataclass(frozen=True, slots=True)
class Total:
    """What an attempt is counted under for ever."""

    type: str
    target: str
    outcome: str
    bucket: int

    @property
    def key(self) -> str:
        """Identifies the total: 64 hexadecimal digits."""
        return digest(*columns_of(self).values())

    @property
    def target_key(self) -> str:
        """Identifies the target: 64 hexadecimal digits."""
        return digest(self.type, self.target)


@dataclass(frozen=True, slots=True)
class Amount:
    """Numbers of one series.

    Args:
        milliseconds: the sum of the durations.
        retries: how many of the attempts were retries.
        unheard: how many of the attempts were events without a listener.
        failures: how many of the attempts failed, and no retry followed.
        skips: how many occurrences were skipped.
    """

    attempts: int = 0
    milliseconds: int = 0
    retries: int = 0
    unheard: int = 0
    failures: int = 0
    skips: int = 0

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            min(self.attempts + other.attempts, LARGEST),
            min(self.milliseconds + other.milliseconds, LARGEST),
            min(self.retries + other.retries, LARGEST),
            min(self.unheard + other.unheard, LARGEST),
            min(self.failures + other.failures, LARGEST),
            min(self.skips + other.skips, LARGEST),
        )

    @property
    def columns(self) -> dict[str, int]:
        """The numbers by the names of their columns."""
        return columns_of(self)


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that has ended, as its row says it. Plain SQL may have written any value."""

    pk: int
    type: object = UNREADABLE
    target: object = UNREADABLE
    outcome: object = UNREADABLE
    queue: object = ""
    schedule: object = None
    group: object = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    is_retry: bool = False
    result: object = ""
    error_class: object = ""
    is_last: bool = False
    """Whether no retry follows."""


@dataclass(frozen=True, slots=True)
class Left:
    """Occurrences that were skipped, as their row says it. Plain SQL may have written any value.

    Args:
        at: when they were recorded, in seconds since 1970.
        number: how many occurrences they are.
    """

    pk: int
    at: object = None
    number: object = 1
    reason: object = SkipReason.OTHER
    type: object = UNREADABLE
    target: object = UNREADABLE
    queue: object = ""
    schedule: object = None
    group: object = None


def counted(attempt: Ended, outcomes: Iterable[str], now: datetime) -> tuple[Series, Amount]:
    """What an attempt is counted under, and what it adds.

    Args:
        outcomes: the outcomes that exist. Any other one is counted as `UNREADABLE`.
        now: its hour is that of an attempt without a usable end.
    """
    lasted = _lasted(attempt)
    outcome = attempt.outcome if attempt.outcome in set(outcomes) else UNREADABLE
    type_, target = label(attempt.type, TYPE_CHARS), label(attempt.target, TARGET_CHARS)
    series = Series(
        _hour(attempt.finished_at or now, now), number(attempt.schedule), type_, target,
        label(queue_of(str(attempt.queue)), QUEUE_CHARS), number(attempt.group), str(outcome),
        len(BOUNDS) if lasted is None else bisect_left(BOUNDS, lasted), _reason(attempt, str(outcome)),
    )  # fmt: skip
    unheard = (type_, target, attempt.result) == ("worker", EVENT, NO_LISTENER) and outcome == "succeeded"
    return series, Amount(
        1, round(1_000 * (lasted or 0.0)), int(attempt.is_retry), int(unheard),
        failures=int(outcome in FAILING and attempt.is_last), skips=int(outcome == Skipped.name),
    )  # fmt: skip


def counted_skip(left: Left, now: datetime) -> tuple[Series, Amount]:
    """What skipped occurrences are counted under, and what they add. They have no attempt.

    Args:
        now: its hour is that of occurrences without a usable instant.
    """
    at = number(left.at)
    usable = at is not None and abs(at - now.timestamp()) < LONGEST
    reason = left.reason if left.reason in set(SkipReason) else SkipReason.OTHER
    series = Series(
        _hour(datetime.fromtimestamp(at, UTC) if usable and at is not None else now, now), number(left.schedule),
        label(left.type, TYPE_CHARS), label(left.target, TARGET_CHARS), label(queue_of(str(left.queue)), QUEUE_CHARS),
        number(left.group), Skipped.name, 0, str(reason),
    )  # fmt: skip
    return series, Amount(skips=number(left.number) or 1)


def limited(series: Series, known: set[str]) -> Series:
    """The series under which an attempt is counted, if others of its hour have so many reasons already.

    Args:
        known: the reasons that have series in this hour. A new one is added while there is room.
    """
    if not series.reason or series.reason in known:
        return series
    if len(known) >= MOST_REASONS:
        return replace(series, reason=OTHER)
    known.add(series.reason)
    return series


def _reason(attempt: Ended, outcome: str) -> str:
    if outcome == Skipped.name:
        return SkipReason.NOT_NEEDED.value
    return (label(attempt.error_class, REASON_CHARS).strip() or outcome) if outcome in FAILING else ""


def total_of(series: Series, known: set[str]) -> Total:
    """The total to which a series belongs.

    Args:
        known: the keys of the targets that have totals of their own. A new target is added while there is room. Later
            targets are counted as `OTHER` for ever, so that no total ever falls.
    """
    own = Total(series.type, series.target, series.outcome, series.bucket)
    if own.target_key not in known and len(known) >= MOST_TARGETS:
        return replace(own, type=OTHER, target=OTHER)
    known.add(own.target_key)
    return own


def label(text: object, most: int) -> str:
    """The text in one line of at most `most` visible characters."""
    if type(text) is str and len(text) <= LONGEST_CACHED:
        return _label(text, most)
    return one_line(visible_text(text, most))[:most]


@lru_cache(maxsize=2_048)
def _label(text: str, most: int) -> str:
    """The result of `label`. The same few names come again and again."""
    return one_line(visible_text(text, most))[:most]


def columns_of(values: Series | Total | Amount) -> dict[str, Any]:
    """The values by the names of their columns. `dataclasses.asdict` would take ten times as long."""
    return {name: getattr(values, name) for name in values.__slots__}


def number(value: object) -> int | None:
    """A whole number that a column holds; None for anything else."""
    return value if type(value) is int and 0 <= value <= LARGEST else None


def digest(*values: object) -> str:
    """The SHA-256 of values of JSON, as 64 hexadecimal digits."""
    return hashlib.sha256(json.dumps(values).encode()).hexdigest()


def _lasted(attempt: Ended) -> float | None:
    """The duration in seconds; None if it is unknown."""
    if attempt.started_at is None or attempt.finished_at is None:
        return None
    return min(max((attempt.finished_at - attempt.started_at).total_seconds(), 0.0), float(LONGEST))


def _hour(instant: datetime, now: datetime) -> datetime:
    """The beginning of the UTC hour. An instant in the future, or of another century, counts as the present."""
    instant = instant.astimezone(UTC) if abs(instant - now) < timedelta(seconds=LONGEST) else now.astimezone(UTC)
    return min(instant, now.astimezone(UTC)).replace(minute=0, second=0, microsecond=0)
