"""Takes the places of limited handlers (`core.run_limit`) for runs that are about to start.

The rows of keys are locked while places are counted and taken. A start never waits for these locks: its transaction
may hold the rows of other keys. If the row of a key is locked, the run waits, and its consumer looks for a free place
right after the transaction (`execution.given_places`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import NamedTuple

from django.db import transaction

from scheduling.core.run_limit import LONGEST_KEY, Limit
from scheduling.execution.key_facts import GRANTED, HELD, WAITS, facts_of
from scheduling.execution.key_rows import Columns, KeyRow, note_starts, read_keys, starts_of, store_used
from scheduling.execution.place_rows import Place, store_places
from scheduling.models import LimitKey, LimitPlace

ANY = 0
"""Stands for a run that waits and that was not read. No execution has this primary key."""


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
        self.rows = self.locked | read_keys(keys.keys() - self.locked.keys())
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
        self.used: dict[int, KeyRow] = {}

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

    def _has_place(self, start: LimitedAttempt, row: KeyRow, own: Place) -> bool:
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
        store_places({pk: own for pk in self.changed if (own := self.places[pk]) is not None}, self.now)
        store_used(self.used.values())

    def _start(self, start: LimitedAttempt, row: KeyRow) -> None:
        self._set(start, row, HELD)
        if start.limited.columns in self.locked and note_starts(row, start.limited.rules, self.now):
            self.used[row.pk] = row

    def _set(self, start: LimitedAttempt, row: KeyRow, state: str) -> None:
        self.places[start.pk] = Place(row.pk, state, start.attempt if state == HELD else None)
        self.changed.add(start.pk)


def _places(keys: Collection[int]) -> dict[int, Place | None]:
    rows = LimitPlace.objects.filter(pk__in=list(keys)).values_list("pk", "limit", "state", "attempt") if keys else ()
    return {pk: Place(limit, state, attempt) for pk, limit, state, attempt in rows}


def _lock(keys: dict[Columns, Limited], now: datetime) -> dict[Columns, KeyRow]:
    """Lock the rows of keys. Missing rows are inserted. Rows that another process has locked are left out."""
    found = read_keys(keys, lock=True)
    missing = keys.keys() - found.keys()
    # In one order, so that two processes that insert the same keys do not wait for each other.
    if absent := sorted(missing - read_keys(missing).keys()):
        made = [
            LimitKey(type=type_, name=name, digest=digest, key=keys[type_, name, digest].key[:LONGEST_KEY], used_at=now)
            for type_, name, digest in absent
        ]
        LimitKey.objects.bulk_create(made, ignore_conflicts=True)
        found |= read_keys(absent, lock=True)
    return found
