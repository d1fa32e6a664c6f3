"""Gives the places of limited handlers (`core.run_limit`) to runs, in the order of their arrival.

The row of a key is locked while places are counted and given. A consumer that starts runs never waits for this lock:
its transaction may hold the rows of other keys. If the lock is taken, its run waits, and gets the
next free place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction

from scheduling.broker import Broker
from scheduling.core.lifecycle import CLAIM_GRACE, State
from scheduling.core.run_limit import LONGEST_KEY, MOST_STARTS, Limit
from scheduling.execution.publish import publish_soon
from scheduling.models import LimitKey, LimitPlace, SchedulerExecution
from scheduling.processes.set_aside import read_rows

HELD, GRANTED, WAITS = (
    LimitPlace.States.HELD.value,
    LimitPlace.States.GRANTED.value,
    LimitPlace.States.WAITING.value,
)


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

    def columns(self) -> dict[str, str]:
        """The columns by which the row of the key is found."""
        digest = hashlib.sha256(self.key.encode("utf-8", "replace")).hexdigest()
        return {"type": self.type, "name": self.name, "digest": digest}


def take_place(limited: Limited, pk: int, attempt: int, now: datetime) -> str:
    """Take a place for an attempt that is about to start. Call it in the transaction of the start.

    Returns:
        Why the run must wait; empty if it has a place.
    """
    with transaction.atomic():
        row = _row_of(limited, now)
        own = LimitPlace.objects.filter(pk=pk).first()
        locked = LimitKey.objects.select_for_update(skip_locked=True).filter(pk=row.pk).first()
        # A start asks twice if its message says something else than its row (`consumer.start`).
        has_place = own is not None and (own.state == GRANTED or (own.state == HELD and own.attempt == attempt))
        if own is not None and own.limit_id == row.pk and has_place:
            LimitPlace.objects.filter(pk=pk).update(state=HELD, attempt=attempt, since=now)
            return ""
        started = _started(locked or row)
        taken = LimitPlace.objects.filter(limit=row, state__in=(GRANTED, HELD)).exclude(pk=pk).count()
        if locked is not None and limited.rules.room(taken, started, now) and not _is_behind(own, row, now):
            _hold(pk, row, attempt, now)
            _note_starts(locked, limited.rules, 1, now)
            return ""
        if own is None or own.limit_id != row.pk or own.state != WAITS:
            values = {"limit": row, "state": WAITS, "attempt": None, "since": now}
            LimitPlace.objects.update_or_create(pk=pk, defaults=values)
        return limited.rules.sentence(limited.subject, limited.key, taken, started, now)


def places_of(keys: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of an execution that has a place or waits for one, and the primary key of its limit."""
    return list(LimitPlace.objects.filter(pk__in=keys).values_list("pk", "limit"))


def free_places(keys: Sequence[int]) -> None:
    """Free the places of attempts that have ended."""
    rows = LimitPlace.objects.filter(pk__in=keys)
    rows._raw_delete(rows.db)


def give_places(limit: int, rules: Limit, now: datetime) -> list[int]:
    """Give the free places of a key to the runs that have waited longest. Returns their executions."""
    with transaction.atomic():
        row = LimitKey.objects.select_for_update().filter(pk=limit).first()
        if row is None:
            return []
        taken = LimitPlace.objects.filter(limit=row, state__in=(GRANTED, HELD)).count()
        room = rules.room(taken, _started(row), now)
        if not room:
            return []
        waiting = LimitPlace.objects.filter(limit=row, state=WAITS).order_by("since", "pk")
        found = list(waiting.values_list("pk", flat=True)[:room])
        if found:
            LimitPlace.objects.filter(pk__in=found, state=WAITS).update(state=GRANTED, since=now)
            _note_starts(row, rules, len(found), now)
        return found


def wake(keys: Sequence[int], broker: Broker, now: datetime) -> int:
    """Offer runs that were given a place to the consumers, at once. Returns how many."""
    woken: list[int] = []
    for pk in sorted(keys):
        rows = SchedulerExecution.objects.filter(pk=pk, deferred_at__isnull=False)
        columns: dict[str, Any] = {"deferred_at": None, "reason": ""}
        if rows.filter(state=State.QUEUED.value).update(wake_at=now, **columns) or rows.filter(
            state=State.CLAIMED.value
        ).update(wake_at=now + CLAIM_GRACE, published_at=None, **columns):
            woken.append(pk)
    if woken and not broker.embedded:
        rows = SchedulerExecution.objects.in_state(State.CLAIMED).filter(pk__in=woken)
        publish_soon(list(read_rows(rows, now)), broker)
    return len(woken)


def _row_of(limited: Limited, now: datetime) -> LimitKey:
    rows = LimitKey.objects.filter(**limited.columns())
    found = rows.first()
    if found is None:
        try:
            with transaction.atomic():
                found = LimitKey.objects.create(**limited.columns(), key=limited.key[:LONGEST_KEY], used_at=now)
        except IntegrityError:
            found = rows.get()  # another process was faster
    return found


def _is_behind(own: LimitPlace | None, row: LimitKey, now: datetime) -> bool:
    """Whether another run has waited longer."""
    waiting = LimitPlace.objects.filter(limit=row, state=WAITS)
    if own is None or own.state != WAITS:
        return waiting.exists()
    first = waiting.order_by("since", "pk").values_list("pk", flat=True).first()
    return first is not None and first != own.pk


def _hold(pk: int, row: LimitKey, attempt: int, now: datetime) -> None:
    values = {"limit": row, "state": HELD, "attempt": attempt, "since": now}
    LimitPlace.objects.update_or_create(pk=pk, defaults=values)


def _note_starts(row: LimitKey, rules: Limit, count: int, now: datetime) -> None:
    row.started = [*rules.recent(_started(row), now), *[now.timestamp()] * count][-MOST_STARTS:] if rules.starts else []
    row.used_at = now
    row.save(update_fields=["started", "used_at"])


def _started(row: LimitKey) -> list[float]:
    """When the last runs started. Values that plain SQL has written and that are no instants are left out."""
    found = row.started if isinstance(row.started, list) else []
    return sorted(float(at) for at in found if isinstance(at, int | float) and not isinstance(at, bool) and at == at)
