"""Takes the places of limited handlers (`core.run_limit`) for runs that are about to start.

The rows of keys are locked while places are counted and taken. A start never waits for these locks: its transaction
may hold the rows of other keys. If the row of a key is locked, the run waits, and its consumer looks for a free place
right after the transaction (`execution.given_places`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import NamedTuple

from django.db import connection, transaction

from scheduling.core.run_limit import LONGEST_KEY, Limit
from scheduling.execution.key_facts import GRANTED, HELD, WAITS, facts_of
from scheduling.models import LimitKey, LimitPlace
from scheduling.processes.database import is_away

USED_STEP = timedelta(minutes=1)
"""How exact `LimitKey.used_at` is. Retention needs days."""

ANY = 0
"""Stands for a run that waits and that was not read. No execution has this primary key."""

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


class Place(NamedTuple):
    """The place of an execution, as it was read."""

    limit: int
    state: str
    attempt: int | None


class LimitedAttempt(NamedTuple):
    """An attempt of a limited handler that is about to start, or has ended.

    Args:
        pk: the execution.
        place: its place, or that of an attempt before it; None if it has none.
    """

    pk: int
    attempt: int
    limited: Limited
    place: Place | None = None


class Taken(NamedTuple):
    """What `take_places` has decided.

    Args:
        reasons: maps each execution to why it must wait. The text is empty if it has a place.
        limits: maps each execution to the row of its key.
        locked: the limits of which runs wait although a place may be free: another process had locked them.
    """

    reasons: dict[int, str]
    limits: dict[int, int]
    locked: dict[int, Limited]


def take_places(starts: Collection[LimitedAttempt], now: datetime) -> Taken:
    """Take places for attempts that are about to start. Call it in the transaction of the start."""
    if not starts:
        return Taken({}, {}, {})
    with transaction.atomic(savepoint=False):
        turn = _Turn({start.limited.columns: start.limited for start in starts}, starts, now)
        reasons = {start.pk: turn.take(start) for start in sorted(starts, key=attrgetter("pk"))}
        turn.write()
        limits = {start.pk: turn.rows[start.limited.columns].pk for start in starts}
        return Taken(reasons, limits, {turn.rows[columns].pk: limited for columns, limited in turn.refused.items()})


class _Turn:
    """The places of the keys that one turn of a consumer needs."""

    def __init__(self, keys: dict[Columns, Limited], starts: Collection[LimitedAttempt], now: datetime) -> None:
        self.now = now
        self.locked = _lock(keys, now)
        self.rows = self.locked | _read(keys.keys() - self.locked.keys())
        """The row of each key. Those that are not locked here are locked by another process."""
        self.refused: dict[Columns, Limited] = {}
        facts = facts_of([row.pk for row in self.rows.values()])
        self.taken = {pk: found.taken for pk, found in facts.items()}
        self.granted = {pk: found.granted for pk, found in facts.items()}
        self.first = {pk: found.first for pk, found in facts.items()}
        # Before the key was locked, another process may have given a place to a run that waited.
        self.places = {start.pk: start.place for start in starts} | _places(
            [start.pk for start in starts if start.place is not None and start.place.state == WAITS]
        )
        self.changed: set[int] = set()
        """The executions whose places this turn has changed."""
        self.used: dict[int, LimitKey] = {}

    def take(self, start: LimitedAttempt) -> str:
        """Why a run must wait; empty if it has a place."""
        limited, own = start.limited, self.places[start.pk]
        row = self.rows[limited.columns]
        if own is not None and own.limit != row.pk:
            own = None  # another release had another key
        if own is not None and own.state != WAITS and self._has_place(start, row, own):
            return ""
        if own is not None and own.state == GRANTED:
            own = None  # it gets the next place
        # The place of an attempt whose consumer was killed is free for others.
        taken = self.taken[row.pk] - (own is not None and own.state == HELD)
        waits = own is not None and own.state == WAITS
        started, first = starts_of(row), self.first[row.pk]
        room = limited.rules.room(taken, started, self.now, self.granted[row.pk])
        if limited.columns in self.locked and room and (first is None or (waits and first == start.pk)):
            self.taken[row.pk] = taken + 1
            if waits:
                self.first[row.pk] = ANY
            self._start(start, row)
            return ""
        if limited.columns not in self.locked or (room and first == ANY):
            self.refused[limited.columns] = limited
        self.taken[row.pk] = taken
        if not waits:
            self._set(start, row, WAITS)
        self.first[row.pk] = start.pk if first is None else first
        return limited.rules.sentence(limited.subject, limited.key, taken, started, self.now)

    def _has_place(self, start: LimitedAttempt, row: LimitKey, own: Place) -> bool:
        """Let a run start that holds a place, or was given one. Returns whether it starts."""
        if own.state == HELD:
            # A start asks twice if its message says something else than its row (`consumer.start`).
            if own.attempt == start.attempt:
                self._set(start, row, HELD)
            return own.attempt == start.attempt
        self.granted[row.pk] -= 1
        if start.limited.columns in self.locked or start.limited.rules.starts is None:
            self._start(start, row)
            return True
        self.taken[row.pk] -= 1  # its start cannot be noted on a row that another process has locked
        return False

    def write(self) -> None:
        """Store what has changed."""
        places = [
            LimitPlace(execution_id=pk, limit_id=own.limit, state=own.state, attempt=own.attempt, since=self.now)
            for pk in sorted(self.changed)
            if (own := self.places[pk]) is not None
        ]
        target = {"unique_fields": ["execution"]} if connection.features.supports_update_conflicts_with_target else {}
        LimitPlace.objects.bulk_create(
            places, update_conflicts=True, update_fields=["limit", "state", "attempt", "since"],
            **target,  # type: ignore[arg-type]  # a dict of one argument
        )  # fmt: skip
        store_used(self.used.values())

    def _start(self, start: LimitedAttempt, row: LimitKey) -> None:
        self._set(start, row, HELD)
        if start.limited.columns in self.locked and note_starts(row, start.limited.rules, self.now):
            self.used[row.pk] = row

    def _set(self, start: LimitedAttempt, row: LimitKey, state: str) -> None:
        self.places[start.pk] = Place(row.pk, state, start.attempt if state == HELD else None)
        self.changed.add(start.pk)


def _places(keys: Collection[int]) -> dict[int, Place | None]:
    rows = LimitPlace.objects.filter(pk__in=list(keys)).values_list("pk", "limit", "state", "attempt") if keys else ()
    return {pk: Place(limit, state, attempt) for pk, limit, state, attempt in rows}


def note_starts(row: LimitKey, rules: Limit, now: datetime) -> bool:
    """Note on the row of a key that a run starts. Returns whether the row must be stored."""
    started = rules.noted(starts_of(row), 1, now)
    # MariaDB returns NULL for 0000-00-00. A sweep does not read the column, and writes it anew.
    used_at: datetime | None = row.__dict__.get("used_at")
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
    try:
        found = list(rows)
    except Exception as error:
        if is_away(error):
            raise
        # Plain SQL may have written a `used_at` that cannot be read. The next start with the key writes it anew.
        found = list(rows.defer("used_at"))
    return {columns: row for row in found if (columns := _columns(row)) in keys}


def _columns(row: LimitKey) -> Columns:
    return row.type, row.name, row.digest
