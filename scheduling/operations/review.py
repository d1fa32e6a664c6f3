"""Reads the tables of a review from the tallies. `core.review` says what they mean.

The database adds up. The tables of failures and skipped occurrences read only tallies of such outcomes, through an
index. The others read all tallies of the days through the index of the hour: two or three queries, and one for the
days before. A query that fails because of a bad row costs its own table only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar

from django.db import transaction
from django.db.models import CharField, Count, Q, QuerySet, Sum
from django.db.models.functions import Cast

from scheduling.core import review as core
from scheduling.core.outcome import FAILING, Cancelled, Skipped, Succeeded
from scheduling.core.review import MOST_ROWS, Failure, HourSums, Job, Key, Review, Skip, Slow, Totals
from scheduling.core.review_range import Range
from scheduling.core.tallies import BOUNDS, REASON_CHARS, TARGET_CHARS, TYPE_CHARS, UNREADABLE, label, number
from scheduling.logs import get_logger
from scheduling.models import Attempt, Tally
from scheduling.models.tally import TALLY_AMOUNTS
from scheduling.models.visibility import Visibility
from scheduling.operations.review_alerts import alert_lines
from scheduling.processes.database import is_away

log = get_logger(__name__)

RAN = (Succeeded.name, *FAILING, Cancelled.name)
"""The outcomes of attempts that count for the retry policy. Interrupted and snoozed ones do not."""

MOST_HOURS = 50_000
"""The hours of a quarter, times the types, are less. Plain SQL can write any type."""
MOST_TARGETS = 20_000
"""So many pairs of a target and a duration are compared, those with the most time spent."""
MOST_JOBS = 1_000
"""So many jobs are compared with the days before, those with the most failures."""
MOST_LOOKED_AT = 100
"""Of so many recovered jobs it is looked up whether they have run."""

LARGEST = {name: 10**12 if name == "milliseconds" else 10**9 for name in TALLY_AMOUNTS}
"""A tally with a larger number is left out: no hour has a billion attempts, and the sums stay within 64 bits."""

_IS_USABLE = (
    Q(**{f"{name}__gte": 0 for name in TALLY_AMOUNTS}, bucket__gte=0, bucket__lte=len(BOUNDS))
    & Q(**{f"{name}__lte": most for name, most in LARGEST.items()})  # in SQLite, a text is more than any number
    & Q(outcome__in=[*Attempt.Outcome.values, UNREADABLE])
)
_SUMS = {
    "ran": Sum("attempts", filter=Q(outcome__in=RAN), default=0),
    "tried_again": Sum("retries", filter=Q(outcome__in=RAN), default=0),
    "failed": Sum("attempts", filter=Q(outcome__in=FAILING), default=0),
    "gave_up": Sum("failures", default=0),
    "left": Sum("skips", default=0),
}
"""The sums in the order of `Totals`. A sum may not have the name of a column."""
_BAD = {"bad": Count("pk", filter=~_IS_USABLE)}

Rows = QuerySet[Tally]
Result = TypeVar("Result")


def review_of(days: Range, visible: Visibility) -> Review:
    """The review of these days.

    Args:
        visible: whose tallies are counted. A tally has the group of its executions.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    return _Reader(days, visible).review()


class _Reader:
    """Reads the tables one by one, and collects what could not be read."""

    def __init__(self, days: Range, visible: Visibility) -> None:
        self.days, self.visible = days, visible
        self.unread: dict[str, str] = {}
        self.more: dict[str, int] = {}
        self.all, self.all_before = self._within(days), self._within(days.before)
        self.now, self.before = self.all.filter(_IS_USABLE), self.all_before.filter(_IS_USABLE)

    def review(self) -> Review:
        by_day, left_out = core.days_of(self._hours(), self.days)
        before = self._read("before", self._totals_before, Totals())
        ran = self.now if left_out else self.all
        new, recovered = self._changes()
        return Review(
            self.days, core.total(by_day), before, by_day,
            self._cut("failures", self._read("failures", lambda: _failures(self.now), list[Failure]())),
            self._cut("new", new), self._cut("recovered", recovered),
            self._cut("slowest", self._read("slowest", lambda: _slowest(ran), list[Slow]())),
            self._cut("skips", self._read("skips", lambda: _skips(self.now), list[Skip]())),
            self._cut("alerts", self._read("alerts", lambda: alert_lines(self.days, self.visible), list[str]())),
            self.more, left_out, self.unread,
        )  # fmt: skip

    def _hours(self) -> list[HourSums]:
        """The sums of each hour. The condition on usable numbers is dear, so it is only used if some are not usable."""
        with suppress(_Unusable):
            return self._try(lambda: _hours(self.all))
        found = self._read("days", lambda: _hours(self.now), list[HourSums]())
        bad = self._read("days", self.all.exclude(_IS_USABLE).count, 0)
        return [*found, HourSums(self.days.since.isoformat(), "", Totals(), bad)]

    def _totals_before(self) -> Totals:
        with suppress(_Unusable):
            return self._try(lambda: _totals(self.all_before))
        return _totals(self.before)

    def _try(self, look: Callable[[], Result]) -> Result:
        """The answer of a query without the condition on usable numbers.

        Raises:
            _Unusable: some numbers are not usable.
        """
        try:
            with transaction.atomic():
                return look()
        except Exception as error:
            if is_away(error):
                raise
            raise _Unusable from error  # for example, SQLite cannot add up huge numbers

    def _changes(self) -> tuple[list[Job], list[Job]]:
        """The jobs that newly fail, and those that have recovered."""
        failing = self._read("new", lambda: self._jobs(self.now), list[Job]())
        failed = self._read("recovered", lambda: self._jobs(self.before), list[Job]())
        if self.unread.keys() & {"new", "recovered"}:
            return [], []
        no_longer = core.recovered(failing, failed, {})[:MOST_LOOKED_AT]
        attempts = self._read("recovered", lambda: _attempts(self.now, no_longer), dict[Key, int]())
        return core.newly_failing(failing, failed), core.recovered(failing, failed, attempts)

    def _within(self, days: Range) -> Rows:
        rows = Tally.objects.filter(hour__gte=days.since, hour__lt=days.until)
        return self.visible.only(rows).order_by()

    def _read(self, name: str, look: Callable[[], Result], otherwise: Result) -> Result:
        try:
            with transaction.atomic():
                return look()
        except Exception as error:
            if is_away(error):
                raise
            log.warning("The part %s of the review cannot be read: %s", name, error)
            self.unread.setdefault(name, label(f"{type(error).__name__}: {error}", 200))
            return otherwise

    def _jobs(self, rows: Rows) -> list[Job]:
        columns = rows.filter(outcome__in=FAILING, failures__gt=0).values_list("type", "target", "schedule")
        found = columns.annotate(gave_up=Sum("failures")).order_by("-gave_up", "target")[: MOST_JOBS + 1]
        jobs = [Job(*_named(type_, target), number(schedule), int(count)) for type_, target, schedule, count in found]
        if len(jobs) > MOST_JOBS:
            self.more["jobs"] = MOST_JOBS
        return jobs[:MOST_JOBS]

    def _cut(self, name: str, rows: Iterable[Result]) -> list[Result]:
        found = list(rows)
        if len(found) > MOST_ROWS:
            self.more[name] = len(found) - MOST_ROWS
        return found[:MOST_ROWS]


def _named(type_: object, target: object) -> tuple[str, str]:
    return label(type_, TYPE_CHARS), label(target, TARGET_CHARS)


class _Unusable(Exception):
    """Some tallies have numbers that cannot be used."""


def _totals(rows: Rows) -> Totals:
    found = rows.aggregate(**_SUMS, **_BAD)
    if found["bad"]:
        raise _Unusable
    return Totals(*(int(found[name]) for name in _SUMS))


def _hours(rows: Rows) -> list[HourSums]:
    # The hour is read as a text: Django could not read a text that plain SQL has written into SQLite.
    hours = rows.annotate(at=Cast("hour", CharField(max_length=40))).values_list("at", "type")
    found = list(hours.annotate(**_SUMS, **_BAD)[:MOST_HOURS])
    if any(row[-1] for row in found):
        raise _Unusable
    return [HourSums(str(at), label(type_, TYPE_CHARS), Totals(*map(int, sums))) for at, type_, *sums, _bad in found]


def _failures(rows: Rows) -> list[Failure]:
    columns = rows.filter(outcome__in=FAILING).values_list("type", "target", "reason")
    found = columns.annotate(gave_up=Sum("failures"), failed=Sum("attempts")).order_by("-gave_up", "-failed", "target")
    return [
        Failure(*_named(type_, target), label(reason, REASON_CHARS), int(gave_up), int(failed))
        for type_, target, reason, gave_up, failed in found[:MOST_JOBS]
    ]  # fmt: skip


def _attempts(rows: Rows, jobs: list[Job]) -> dict[Key, int]:
    """How many attempts each of these jobs had."""
    if not jobs:
        return {}
    named = rows.filter(target__in={job.target for job in jobs}, outcome__in=RAN)
    found = named.values_list("type", "target", "schedule").annotate(ran=Sum("attempts"))
    return {Job(*_named(type_, target), number(schedule)).key: int(ran) for type_, target, schedule, ran in found}


def _slowest(rows: Rows) -> list[Slow]:
    columns = rows.filter(outcome__in=RAN, attempts__gt=0).values_list("type", "target", "bucket")
    found = columns.annotate(ran=Sum("attempts"), spent=Sum("milliseconds")).order_by("-spent")[:MOST_TARGETS]
    return core.slowest(
        (*_named(type_, target), int(bucket), int(count), int(spent)) for type_, target, bucket, count, spent in found
    )


def _skips(rows: Rows) -> list[Skip]:
    skips = rows.filter(outcome=Skipped.name, skips__gt=0)
    columns = skips.values_list("reason", "type", "target").annotate(left=Sum("skips"))
    return [
        Skip(label(reason, REASON_CHARS), *_named(type_, target), int(left))
        for reason, type_, target, left in columns.order_by("-left", "target")[:MOST_JOBS]
    ]  # fmt: skip
