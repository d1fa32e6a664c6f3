"""Takes the places of limited handlers (`core.run_limit`) for runs that are about to start.

The rows of keys are locked while places are counted and taken. A start never waits for these locks: its transaction
may hold the rows of other keys. If the row of a key is locked, the run waits, and its consumer looks for a free place
right after the transaction (`execution.given_places`).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import connection, transaction
from django.db.models import Exists, OuterRef, QuerySet

from scheduling.core.run_limit import LONGEST_KEY, Limit
from scheduling.models import LimitKey, LimitPlace

HELD, GRANTED, WAITS = (
    LimitPlace.States.HELD.value,
    LimitPlace.States.GRANTED.value,
    LimitPlace.States.WAITING.value,
)

USED_STEP = timedelta(minutes=1)
"""How exact `LimitKey.used_at` is. Retention needs days."""

Columns = tuple[str, str, str]
"""The type, the name and the digest by which the row of a key is found."""


@dataclass(frozen=True)
class Limited:
    """A key of a limited handler.

    Args:
        rules: the limit that holds now.
    """

    type: str
    name: str
    key: str
    rules: Limit

    @property
    def subject(self) -> str:
        """The handler in a sentence."""
        return f"the {self.type} {self.name!r}"

    @property
    def columns(self) -> Columns:
        """The columns by which the row of the key is found."""
        return self.type, self.name, hashlib.sha256(self.key.encode("utf-8", "replace")).hexdigest()


class LimitedAttempt(NamedTuple):
    """An attempt of a limited handler that is about to start, or has ended.

    Args:
        pk: the execution.
    """

    pk: int
    attempt: int
    limited: Limited


class Taken(NamedTuple):
    """What `take_places` has decided.

    Args:
        reasons: maps each execution to why it must wait. The text is empty if it has a place.
        locked: the limits that another process had locked. Runs of these limits wait, although a place may be free.
    """

    reasons: dict[int, str]
    locked: dict[int, Limited]


def take_places(starts: Collection[LimitedAttempt], now: datetime) -> Taken:
    """Take places for attempts that are about to start. Call it in the transaction of the start."""
    if not starts:
        return Taken({}, {})
    with transaction.atomic(savepoint=False):
        turn = _Turn({start.limited.columns: start.limited for start in starts}, starts, now)
        reasons = {start.pk: turn.take(start) for start in sorted(starts)}
        turn.write()
        return Taken(reasons, {turn.rows[columns].pk: limited for columns, limited in turn.refused.items()})


class _Turn:
    """The places of the keys that one turn of a consumer needs."""

    def __init__(self, keys: dict[Columns, Limited], starts: Collection[LimitedAttempt], now: datetime) -> None:
        self.now = now
        self.locked = _lock(keys, now)
        self.rows = self.locked | _read(keys.keys() - self.locked.keys())
        """The row of each key. Those that are not locked here are locked by another process."""
        self.refused: dict[Columns, Limited] = {}
        limits = [row.pk for row in self.rows.values()]
        self.own = {place.pk: place for place in LimitPlace.objects.filter(pk__in=[start.pk for start in starts])}
        self.taken = taken_places(limits)
        self.waiting = with_waiting_runs(limits)
        """The keys for which runs wait."""
        self.changed: dict[int, LimitPlace] = {}
        self.used: dict[int, LimitKey] = {}

    def take(self, start: LimitedAttempt) -> str:
        """Why a run must wait; empty if it has a place."""
        limited, own = start.limited, self.own.get(start.pk)
        row = self.rows[limited.columns]
        if own is not None and own.limit_id != row.pk:
            own = None  # another release had another key
        # A start asks twice if its message says something else than its row (`consumer.start`).
        if own is not None and (own.state == GRANTED or (own.state == HELD and own.attempt == start.attempt)):
            self._set(start, row, HELD)
            return ""
        taken = self.taken[row.pk] - (own is not None and own.state == HELD)
        started = starts_of(row)
        if limited.columns not in self.locked:
            self.refused[limited.columns] = limited
        elif limited.rules.room(taken, started, self.now) and not self._is_behind(own, row):
            self._set(start, row, HELD)
            self.taken[row.pk] = taken + 1
            self.use(row, limited.rules, 1)
            return ""
        self.taken[row.pk] = taken
        self.waiting.add(row.pk)
        if own is None or own.state != WAITS:
            self._set(start, row, WAITS)
        return limited.rules.sentence(limited.subject, limited.key, taken, started, self.now)

    def use(self, row: LimitKey, rules: Limit, count: int) -> None:
        """Note that runs of a key start."""
        if note_starts(row, rules, count, self.now):
            self.used[row.pk] = row

    def write(self) -> None:
        """Store what has changed."""
        target = {"unique_fields": ["execution"]} if connection.features.supports_update_conflicts_with_target else {}
        LimitPlace.objects.bulk_create(
            self.changed.values(), update_conflicts=True, update_fields=["limit", "state", "attempt", "since"],
            **target,  # type: ignore[arg-type]  # a dict of one argument
        )  # fmt: skip
        store_used(self.used.values())

    def _set(self, start: LimitedAttempt, row: LimitKey, state: str) -> None:
        attempt = start.attempt if state == HELD else None
        place = LimitPlace(execution_id=start.pk, limit=row, state=state, attempt=attempt, since=self.now)
        self.own[start.pk] = self.changed[start.pk] = place

    def _is_behind(self, own: LimitPlace | None, row: LimitKey) -> bool:
        """Whether another run has waited longer."""
        if row.pk not in self.waiting:
            return False
        if own is None or own.state != WAITS:
            return True
        first = waiting_places(row.pk).values_list("pk", flat=True).first()
        return first is not None and first != own.pk


def waiting_places(limit: int) -> QuerySet[LimitPlace]:
    """The runs that wait for a place of a key, the one that has waited longest first."""
    return LimitPlace.objects.filter(limit=limit, state=WAITS).order_by("since", "pk")


def taken_places(limits: Iterable[int]) -> Counter[int]:
    """How many runs of each limit have a place: they run, or were let through."""
    rows = LimitPlace.objects.filter(limit__in=list(limits), state__in=(GRANTED, HELD)).order_by()
    return Counter(rows.values_list("limit_id", flat=True))


def with_waiting_runs(limits: Iterable[int]) -> set[int]:
    """The limits among these for which runs wait."""
    waiting = Exists(LimitPlace.objects.filter(limit=OuterRef("pk"), state=WAITS))
    return set(LimitKey.objects.filter(waiting, pk__in=list(limits)).order_by().values_list("pk", flat=True))


def note_starts(row: LimitKey, rules: Limit, count: int, now: datetime) -> bool:
    """Note on the row of a key that runs start. Returns whether the row must be stored."""
    started = rules.noted(starts_of(row), count, now)
    used_at: datetime | None = row.used_at  # MariaDB returns NULL for 0000-00-00
    if started == row.started and used_at is not None and used_at <= now < used_at + USED_STEP:
        return False
    row.started, row.used_at = started, now
    return True


def store_used(rows: Iterable[LimitKey]) -> None:
    """Store what `note_starts` has changed."""
    for row in rows:
        row.save(update_fields=["started", "used_at"])


def starts_of(row: LimitKey) -> list[float]:
    """When the last runs started. Values that plain SQL has written and that are no instants are left out."""
    found = row.started if isinstance(row.started, list) else []
    return sorted(float(at) for at in found if isinstance(at, int | float) and not isinstance(at, bool) and at == at)


def _lock(keys: dict[Columns, Limited], now: datetime) -> dict[Columns, LimitKey]:
    """Lock the rows of keys. Missing rows are inserted. Rows that another process has locked are left out."""
    found = _read(keys, lock=True)
    missing = keys.keys() - found.keys()
    # In one order, so that two processes that insert the same keys do not wait for each other.
    if absent := sorted(missing - _read(missing).keys()):
        made = [
            LimitKey(type=type_, name=name, digest=digest, key=keys[type_, name, digest].key[:LONGEST_KEY], used_at=now)
            for type_, name, digest in absent
        ]
        LimitKey.objects.bulk_create(made, ignore_conflicts=True)
        found |= _read(absent, lock=True)
    return found


def _read(keys: Collection[Columns], *, lock: bool = False) -> dict[Columns, LimitKey]:
    if not keys:
        return {}
    types, names, digests = (set(values) for values in zip(*keys, strict=True))
    rows = LimitKey.objects.filter(type__in=types, name__in=names, digest__in=digests).order_by("pk")
    if lock and connection.features.has_select_for_update:
        rows = rows.select_for_update(skip_locked=True)
    return {columns: row for row in rows if (columns := _columns(row)) in keys}


def _columns(row: LimitKey) -> Columns:
    return row.type, row.name, row.digest
