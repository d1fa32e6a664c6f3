"""Counts ended attempts into the tallies, each attempt once.

The producers count them in the order of their primary keys, behind a mark that moves in the same transaction. The one
row of the mark is also the lock: only the process that holds it writes tallies. Settling writes nothing for them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.db import connections, transaction
from django.db.models import Manager, Max, QuerySet, Subquery
from django.utils import timezone as clock

from scheduling.core.outcome import FAILING
from scheduling.core.tallies import (
    MOST_REASONS,
    REASON_CHARS,
    SETTLED,
    Amount,
    Series,
    Total,
    columns_of,
    counted,
    label,
    limited,
    number,
    total_of,
)
from scheduling.execution.ended_attempts import ended_attempts
from scheduling.execution.rule_pauses import pause_failing_after
from scheduling.logs import get_logger
from scheduling.models import Attempt, Tally, TallyMark, TallyTotal
from scheduling.models.prepared import Prepared
from scheduling.models.tally import AMOUNTS, TALLY_AMOUNTS
from scheduling.models.tally_mark import ONLY

log = get_logger(__name__)

ATTEMPTS_PER_PASS = 500
"""SQLite has one writer, so a transaction must be short."""
PASSES = 5
"""So many passes follow each other while attempts wait, each in a transaction of its own."""

_MARK_AND_NEWEST = Prepared(
    lambda _now: TallyMark.objects.filter(pk=ONLY).values_list(
        "attempt", "seen", "seen_at", Subquery(Attempt.objects.order_by("-pk").values("pk")[:1])
    )
)
"""The columns of the mark, and the primary key of the newest attempt. Each sweep asks for them."""

KEYS_PER_QUERY = 500
"""Older versions of SQLite accept at most 999 parameters."""


def tally_waiting(now: datetime, limit: int = ATTEMPTS_PER_PASS) -> int:
    """Count attempts that wait for it. Returns how many.

    An attempt is counted one to two minutes after its end. If another process counts at this moment, nothing is done.

    Args:
        now: the time of the database.
        limit: how many attempts a transaction counts.
    """
    done = 0
    for _ in range(PASSES):
        if not _is_due(now):
            break
        with transaction.atomic():
            mark = locked_mark(skip_locked=True)
            count = _pass(mark, now, limit) if mark is not None else 0
        done += count
        if count < limit:
            break
    return done


def tally_now(executions: Collection[int]) -> int:
    """Count the attempts of executions that are about to be removed in this transaction. Returns how many.

    Only those are counted that no producer has counted. The mark stays where it is: their rows are gone when it passes.
    """
    waiting = Attempt.objects.filter(execution__in=executions, pk__gt=Subquery(tallied_up_to()))
    TallyMark.objects.get_or_create(pk=ONLY)
    if not waiting.exists():
        return 0
    mark = locked_mark(skip_locked=False)
    behind = waiting if mark is None else Attempt.objects.filter(execution__in=executions, pk__gt=mark.attempt)
    keys = list(behind.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(keys), ATTEMPTS_PER_PASS):
        _count(keys[start : start + ATTEMPTS_PER_PASS], clock.now())
    return len(keys)


def tallied_up_to() -> QuerySet[TallyMark, int]:
    """A subquery: the attempts up to this primary key are counted."""
    return TallyMark.objects.filter(pk=ONLY).values_list("attempt", flat=True)[:1]


def _is_due(now: datetime) -> bool:
    """Whether a pass would do anything. It locks nothing, because most sweeps find nothing to do."""
    found = _MARK_AND_NEWEST.rows(now)
    if not found:
        TallyMark.objects.get_or_create(pk=ONLY)
        return True
    attempt, seen, seen_at, newest = found[0]
    mark = TallyMark(attempt=attempt, seen=seen, seen_at=seen_at)
    if not _usable(mark, now):
        return True
    return _is_settled(mark, now) if mark.seen > mark.attempt else (newest or 0) != mark.attempt


def locked_mark(*, skip_locked: bool) -> TallyMark | None:
    """Lock the row of the mark. None: there is none yet, or another process has locked it."""
    return TallyMark.objects.select_for_update(skip_locked=skip_locked).filter(pk=ONLY).first()


def _usable(mark: TallyMark, now: datetime) -> bool:
    """Whether the software has written these numbers. SQLite stores any type. An instant in the future would block."""
    numbers = (mark.attempt, mark.seen, mark.seen_at)
    if any(number(value) is None for value in numbers):
        return False
    return mark.attempt <= mark.seen and mark.seen_at <= now.timestamp() + SETTLED.total_seconds()


def _is_settled(mark: TallyMark, now: datetime) -> bool:
    """Whether a minute is over since the attempts were seen."""
    return now.timestamp() - mark.seen_at >= SETTLED.total_seconds()


def _newest() -> int:
    return Attempt.objects.aggregate(newest=Max("pk"))["newest"] or 0


def _pass(mark: TallyMark, now: datetime, limit: int) -> int:
    """Count up to `limit` attempts, and move the mark behind them. When none is left, look which ones come next."""
    keys: list[int] = []
    if not _usable(mark, now):
        log.error("The mark of the tallies cannot be used: %s, %s, %s", mark.attempt, mark.seen, mark.seen_at)
        tallied = number(mark.attempt)
        mark.attempt = mark.seen = _newest() if tallied is None else tallied
    elif mark.seen > mark.attempt:
        if not _is_settled(mark, now):
            return 0
        rows = Attempt.objects.filter(pk__gt=mark.attempt, pk__lte=mark.seen).order_by("pk")
        keys = list(rows.values_list("pk", flat=True)[:limit])
        # The process that has settled them has done this already, unless it has died.
        pause_failing_after(_count(keys, now), now)
        mark.attempt = keys[-1] if len(keys) == limit else mark.seen
    if mark.attempt == mark.seen:
        # Without this, a mark that plain SQL has set too high would count nothing for ever. No attempt lies between.
        mark.seen = _newest()
        mark.attempt, mark.seen_at = min(mark.attempt, mark.seen), int(now.timestamp())
    TallyMark.objects.filter(pk=ONLY).update(attempt=mark.attempt, seen=mark.seen, seen_at=mark.seen_at)
    return len(keys)


def _count(keys: Sequence[int], now: datetime) -> set[int]:
    """Add attempts to the tallies of their hours and to the totals. The caller holds the lock of the mark.

    Returns:
        The ids of the schedules of those that have failed for good.
    """
    if not keys:
        return set()
    hours: dict[Series, Amount] = defaultdict(Amount)
    totals: dict[Total, Amount] = defaultdict(Amount)
    reasons: dict[datetime, set[str]] = {}
    known = set(TallyTotal.objects.order_by().values_list("target_key", flat=True).distinct())
    failing: set[int] = set()
    for attempt in ended_attempts(keys):
        if attempt.is_last and attempt.outcome in FAILING and type(attempt.schedule) is int:
            failing.add(attempt.schedule)
        series, amount = counted(attempt, Attempt.Outcome.values, now)
        totals[total_of(series, known)] += amount
        if series.reason and series.hour not in reasons:
            reasons[series.hour] = _reasons(series.hour)
        hours[limited(series, reasons[series.hour]) if series.reason else series] += amount
    add_to_hours(hours)
    extra = {total.key: ({**columns_of(total), "target_key": total.target_key}, each) for total, each in totals.items()}
    _add(TallyTotal, AMOUNTS, extra)
    return failing


def add_to_hours(hours: Mapping[Series, Amount]) -> None:
    """Add numbers to the tallies of their hours. The caller holds the lock of the mark."""
    _add(Tally, TALLY_AMOUNTS, {series.key: (columns_of(series), amount) for series, amount in hours.items()})


def _reasons(hour: datetime) -> set[str]:
    """Reasons that have tallies in this hour. There may be more of them than these, if plain SQL has written some."""
    rows = Tally.objects.filter(hour=hour).exclude(reason="").order_by()
    return {label(found, REASON_CHARS) for found in rows.values_list("reason", flat=True).distinct()[:MOST_REASONS]}


def _add(
    model: type[Tally] | type[TallyTotal], names: Sequence[str], added: Mapping[str, tuple[dict[str, Any], Amount]]
) -> None:
    """Add numbers to rows. The rows that are missing are made."""
    rows: Manager[Any] = model._default_manager
    keys = list(added)
    before: dict[str, Amount] = {}
    for start in range(0, len(keys), KEYS_PER_QUERY):
        found = rows.filter(key__in=keys[start : start + KEYS_PER_QUERY]).order_by()
        for key, *numbers in found.values_list("key", *names):
            before[key] = Amount(*(number(value) or 0 for value in numbers))  # SQLite stores any type
    new = [
        model(key=key, **columns, **_named(before.get(key, Amount()) + amount, names))
        for key, (columns, amount) in added.items()
    ]
    unique = ["key"] if connections[rows.db].features.supports_update_conflicts_with_target else None
    rows.bulk_create(new, update_conflicts=True, unique_fields=unique, update_fields=list(names))


def _named(amount: Amount, names: Sequence[str]) -> dict[str, int]:
    columns = amount.columns
    return {name: columns[name] for name in names}
