"""The review: what failed, was retried, took long and was skipped in some days, compared with the days before.

The tables are made from sums of the tallies. So executions that retention has removed are still told.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import groupby

from scheduling.core.review_range import Range
from scheduling.core.tallies import BOUNDS

MOST_ROWS = 20
"""So many rows of a table are shown. `Table.more` says how many others there are."""


@dataclass(frozen=True, slots=True)
class Totals:
    """Sums of tallies.

    Args:
        attempts: attempts that count for the retry policy: interrupted and snoozed ones are left out.
        retries: how many of the attempts were retries.
        failed: how many of the attempts failed, whether or not a retry followed.
        failures: how many runs failed for good: no retry followed.
        skips: skipped occurrences.
    """

    attempts: int = 0
    retries: int = 0
    failed: int = 0
    failures: int = 0
    skips: int = 0

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            self.attempts + other.attempts, self.retries + other.retries, self.failed + other.failed,
            self.failures + other.failures, self.skips + other.skips,
        )  # fmt: skip

    @property
    def runs(self) -> int:
        """How many runs had their first attempt."""
        return max(self.attempts - self.retries, 0)

    @property
    def retries_per_run(self) -> float:
        """How many retries a run needed on average."""
        return self.retries / self.runs if self.runs else 0.0

    @property
    def retry_share(self) -> float:
        """Retries as a share of all attempts, from 0 to 1."""
        return min(self.retries / self.attempts, 1.0) if self.attempts else 0.0


@dataclass(frozen=True, slots=True)
class HourSums:
    """The totals of one type in one UTC hour. `hour` is a text in ISO 8601; plain SQL may have written any other."""

    hour: str
    type: str
    totals: Totals
    left_out: int = 0
    """How many tallies have numbers that cannot be used."""


@dataclass(frozen=True, slots=True)
class Day:
    """The totals of one type on one day."""

    day: date
    type: str
    totals: Totals


@dataclass(frozen=True, slots=True)
class Failure:
    """The failures of one target for one reason: how many runs failed for good, and how many attempts failed."""

    type: str
    target: str
    reason: str
    failures: int
    failed: int


Key = tuple[str, str, int | None]
"""What a job is found by."""


@dataclass(frozen=True, slots=True)
class Job:
    """One target in one schedule.

    Args:
        schedule: the id of the schedule, which may be deleted; None for runs without a schedule.
        failures: how many runs failed for good.
        attempts: how many attempts there were in the days of the review; None if it is not known.
    """

    type: str
    target: str
    schedule: int | None
    failures: int = 0
    attempts: int | None = None

    @property
    def key(self) -> Key:
        """What the job is found by. Databases compare texts without case."""
        return self.type.casefold(), self.target.casefold(), self.schedule


@dataclass(frozen=True, slots=True)
class Slow:
    """How long the attempts of one target took.

    Args:
        average: in seconds.
        p95: 95 % of the attempts took at most so many seconds: a bound of `core.tallies.BOUNDS`. None: more than the
            largest bound.
    """

    type: str
    target: str
    attempts: int
    average: float
    p95: float | None


@dataclass(frozen=True, slots=True)
class Skip:
    """Skipped occurrences of one target for one reason (`core.skip_reasons.SkipReason`)."""

    reason: str
    type: str
    target: str
    skips: int


@dataclass(frozen=True)
class Review:
    """Each list has its most important row first, and at most `MOST_ROWS` rows (`days`: all).

    Args:
        days: the last day first; within a day by type.
        alerts: a line about each alert.
        more: for lists that are cut, how many rows are left out, by the name of the list. A number may be a bound.
        left_out: how many tallies have values that cannot be used. They are in no sum.
        unread: the names of the lists that could not be read, with the error.
    """

    range: Range
    now: Totals = Totals()
    before: Totals = Totals()
    days: Sequence[Day] = ()
    failures: Sequence[Failure] = ()
    new: Sequence[Job] = ()
    recovered: Sequence[Job] = ()
    slowest: Sequence[Slow] = ()
    skips: Sequence[Skip] = ()
    alerts: Sequence[str] = ()
    more: Mapping[str, int] = field(default_factory=dict)
    left_out: int = 0
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def by_day(self) -> list[tuple[date, Totals]]:
        """The totals of each day, the first day first. Days without attempts are among them."""
        found: dict[date, Totals] = defaultdict(Totals)
        for row in self.days:
            found[row.day] += row.totals
        return [(day, found[day]) for day in self.range.days]


def days_of(rows: Iterable[HourSums], within: Range) -> tuple[list[Day], int]:
    """The totals of each day and type, and how many tallies were left out, because they cannot be used."""
    found: dict[tuple[date, str], Totals] = defaultdict(Totals)
    left_out = 0
    for row in rows:
        left_out += row.left_out
        hour = _instant(row.hour)
        if hour is None:
            left_out += 1
        elif row.totals != Totals():
            found[within.day_of(hour), row.type] += row.totals
    newest = sorted(found, key=lambda key: (-key[0].toordinal(), key[1]))
    return [Day(*key, found[key]) for key in newest], left_out


def _instant(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found


def total(days: Iterable[Day]) -> Totals:
    """The sum of all days."""
    return sum((row.totals for row in days), Totals())


def newly_failing(now: Iterable[Job], before: Iterable[Job]) -> list[Job]:
    """The jobs that fail now and did not fail before, the one with the most failures first."""
    known = {job.key for job in before}
    return _sorted(job for job in now if job.key not in known)


def recovered(now: Iterable[Job], before: Iterable[Job], attempts: Mapping[Key, int]) -> list[Job]:
    """The jobs that failed before and do not fail now. Those that have not run now come last.

    Args:
        attempts: how many attempts the jobs had now, by `Job.key`.
    """
    failing = {job.key for job in now}
    found = [replace(job, attempts=attempts.get(job.key, 0)) for job in before if job.key not in failing]
    return sorted(_sorted(found), key=lambda job: not job.attempts)


def _sorted(jobs: Iterable[Job]) -> list[Job]:
    return sorted(jobs, key=lambda job: (-job.failures, job.target, job.schedule or 0))


def slowest(rows: Iterable[tuple[str, str, int, int, int]]) -> list[Slow]:
    """How long the attempts of each target took, the slowest on average first.

    Args:
        rows: type, target, bucket (the place in `BOUNDS`), the number of attempts, and their milliseconds.
    """
    found = []
    ordered = sorted(rows, key=lambda row: (row[0].casefold(), row[1].casefold()))
    for _key, group in groupby(ordered, key=lambda row: (row[0].casefold(), row[1].casefold())):
        parts = list(group)
        attempts = sum(part[3] for part in parts)
        if attempts > 0:
            spent = sum(part[4] for part in parts)
            bound = p95_bound([(bucket, number) for _type, _target, bucket, number, _ms in parts])
            found.append(Slow(parts[0][0], parts[0][1], attempts, spent / 1_000 / attempts, bound))
    return sorted(found, key=lambda slow: -slow.average)


def p95_bound(buckets: Iterable[tuple[int, int]]) -> float | None:
    """The bound within which 95 % of the attempts lie, in seconds; None if it is more than the largest bound.

    Args:
        buckets: pairs of the place in `BOUNDS` and the number of attempts.
    """
    counts: dict[int, int] = defaultdict(int)
    for bucket, number in buckets:
        counts[min(max(bucket, 0), len(BOUNDS))] += number
    rank, passed = math.ceil(0.95 * sum(counts.values())), 0
    for place, bound in enumerate(BOUNDS):
        passed += counts[place]
        if passed >= rank:
            return float(bound)
    return None
