"""Reads and locks the rows of keys of limits, and notes on them when runs have started."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet

from scheduling.core.run_limit import Limit
from scheduling.models import LimitKey
from scheduling.models.prepared_over import PreparedOver
from scheduling.processes.database import is_away

USED_STEP = timedelta(minutes=1)
"""How exact `LimitKey.used_at` is. Retention needs days."""

Columns = tuple[str, str, str]
"""The type, the name and the digest by which the row of a key is found."""

NAMES = ("pk", "type", "name", "digest", "started")


@dataclass
class KeyRow:
    """The row of a key.

    Args:
        started: when the last runs started, as the row says. Plain SQL can write any JSON.
        used_at: when a run has started last; None if that cannot be read.
    """

    pk: int
    type: str
    name: str
    digest: str
    started: Any
    used_at: datetime | None = None

    @property
    def columns(self) -> Columns:
        """By what the row is found."""
        return self.type, self.name, self.digest


def read_keys(keys: Collection[Columns], *, lock: bool = False) -> dict[Columns, KeyRow]:
    """The rows of keys.

    Args:
        lock: lock them until the end of the transaction. Those that another process has locked are left out.
    """
    if not keys:
        return {}
    rows = _rows(_LOCKED if lock else _READ, *(sorted(set(values)) for values in zip(*keys, strict=True)))
    return {row.columns: row for row in rows if row.columns in keys}


def lock_keys(primary_keys: Collection[int]) -> dict[int, KeyRow]:
    """Lock the rows with these primary keys. Those that another process has locked are left out."""
    return {row.pk: row for row in _rows(_LOCKED_BY_PK, sorted(primary_keys))} if primary_keys else {}


def note_starts(row: KeyRow, rules: Limit, now: datetime) -> bool:
    """Note on the row of a key that a run starts. Returns whether the row must be stored."""
    started = rules.noted(starts_of(row), 1, now)
    # None: MariaDB returns it for 0000-00-00, and other databases refuse the column. It is written anew.
    if started == row.started and row.used_at is not None and row.used_at <= now < row.used_at + USED_STEP:
        return False
    row.started, row.used_at = started, now
    return True


def store_used(rows: Iterable[KeyRow]) -> None:
    """Store what `note_starts` has changed."""
    for row in rows:
        LimitKey.objects.filter(pk=row.pk).update(started=row.started, used_at=row.used_at)


def starts_of(row: KeyRow | LimitKey) -> list[float]:
    """When the last runs started. Values that plain SQL has written and that are no instants are left out."""
    found = row.started if isinstance(row.started, list) else []
    return sorted(float(at) for at in found if isinstance(at, int | float) and not isinstance(at, bool) and at == at)


def _rows(query: PreparedOver, *lists: list[Any]) -> list[KeyRow]:
    try:
        return [KeyRow(*row) for row in query.rows(*lists)]
    except Exception as error:
        if is_away(error):
            raise
        # Plain SQL may have written a `used_at` that cannot be read. The next start with the key writes it anew.
        return [KeyRow(*row) for row in _WITHOUT_USE[query].rows(*lists)]


def _query(*names: str, by_pk: bool, lock: bool) -> PreparedOver:
    def by_columns(types: list[str], handlers: list[str], digests: list[str]) -> QuerySet[LimitKey, Any]:
        return chosen(LimitKey.objects.filter(type__in=types, name__in=handlers, digest__in=digests))

    def by_keys(keys: list[int]) -> QuerySet[LimitKey, Any]:
        return chosen(LimitKey.objects.filter(pk__in=keys))

    def chosen(rows: QuerySet[LimitKey]) -> QuerySet[LimitKey, Any]:
        rows = rows.order_by("pk")
        return (rows.select_for_update(skip_locked=True) if lock else rows).values_list(*names)

    return PreparedOver(by_keys, int) if by_pk else PreparedOver(by_columns, str, str, str)


_READ, _LOCKED, _LOCKED_BY_PK = (
    _query(*NAMES, "used_at", by_pk=by_pk, lock=lock) for by_pk, lock in ((False, False), (False, True), (True, True))
)
_WITHOUT_USE = {
    _READ: _query(*NAMES, by_pk=False, lock=False),
    _LOCKED: _query(*NAMES, by_pk=False, lock=True),
    _LOCKED_BY_PK: _query(*NAMES, by_pk=True, lock=True),
}
