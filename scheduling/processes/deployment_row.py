"""Reads and writes the row of the deployment. The statement that reads it runs often, so it is plain SQL."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from django.db import DEFAULT_DB_ALIAS, IntegrityError, connection, connections, transaction
from django.db.models import F

from scheduling.core.deployment import KEPT_TIMELINES, Hold, Identity, Standing, seconds
from scheduling.models import Deployment, SchedulerExecution
from scheduling.models.deployment import ONLY

TEXTS = ("timeline", "worked", "name", "fingerprints", "held_reason", "former", "confirmed_by")
INSTANTS = ("held_at", "beat_at", "known_until", "confirmed_at")

Values = tuple[Any, ...]
"""The values of TEXTS and INSTANTS, as a cursor returns them."""

UNKNOWN_REASON = "The database was restored."
"""What a hold says whose reason plain SQL has removed."""


_PLAIN = {"mysql": "CAST({} AS CHAR)", "sqlite": "COALESCE({}, NULL)"}
"""An expression of the same value that no driver takes for an instant."""


def read_row() -> Values | None:
    """The values of the row; None if there is no row."""
    with connection.cursor() as cursor:
        cursor.execute(_statement(connection.vendor), [ONLY])
        found: Values | None = cursor.fetchone()
    return found


@lru_cache(maxsize=4)
def _statement(_vendor: str) -> str:
    quote = connection.ops.quote_name
    table = quote(Deployment._meta.db_table)
    return f"SELECT {', '.join(selected(table))} FROM {table} WHERE {quote('id')} = %s"  # noqa: S608


def selected(table: str) -> list[str]:
    """The SQL of the values. No driver converts the instants, because it cannot convert each one that SQL can write.

    Args:
        table: the name or the alias of the table, as SQL has it.
    """
    quote = connection.ops.quote_name
    plain = _PLAIN.get(connection.vendor, "CAST({} AS TEXT)")
    instants = [plain.format(f"{table}.{quote(name)}") for name in INSTANTS]
    return [*(f"{table}.{quote(name)}" for name in TEXTS), *instants]


def standing(values: Values) -> Standing:
    """What the row says. Plain SQL may have written any value."""
    timeline, worked, name, stored, reason, former, confirmed_by, held_at, beat_at, known_until, confirmed_at = values
    return Standing(
        Identity(str(name), tuple(str(stored).split())),
        str(timeline),
        seconds(worked),
        _instant(beat_at),
        (str(reason) or UNKNOWN_REASON) if held_at is not None else "",
        tuple(str(former).split()),
        _instant(known_until),
        _instant(confirmed_at),
        str(confirmed_by),
    )


def _instant(stored: object) -> datetime | None:
    """An instant that the database has written as a text. Those of SQLite and MariaDB have no zone."""
    try:
        found = datetime.fromisoformat(str(stored))
        return found.astimezone(UTC) if found.tzinfo is not None else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def row_now() -> Standing | None:
    """What the row says now; None if there is no row."""
    values = read_row()
    return standing(values) if values is not None else None


def make_row_if_new(using: str = DEFAULT_DB_ALIAS) -> bool:
    """Make the row of a database that has run nothing yet. Returns whether there is a row now.

    The row belongs to no deployment until a process looks at it. `migrate` may run with other settings.
    """
    rows = Deployment.objects.using(using)
    if rows.filter(pk=ONLY).exists():
        return True
    if SchedulerExecution.objects.using(using).exists():
        return False
    try:
        with transaction.atomic(using):
            rows.create(pk=ONLY, timeline=uuid.uuid4().hex)
    except IntegrityError:
        pass  # another process has just made it
    return True


def make_after_migrate(sender: Any, using: str = DEFAULT_DB_ALIAS, **_kwargs: Any) -> None:
    """`post_migrate` receiver: make the row as soon as its table exists."""
    wanted = {model._meta.db_table for model in (Deployment, SchedulerExecution)}
    if wanted <= set(connections[using].introspection.table_names()):
        make_row_if_new(using)


def adopt(row: Standing, own: Identity) -> None:
    """Write this process's name and present fingerprint into a row that belongs to its deployment."""
    joined = row.identity.joined(own)
    if joined != row.identity:
        rows = Deployment.objects.filter(pk=ONLY, fingerprints=" ".join(row.identity.fingerprints))
        rows.update(name=joined.name, fingerprints=" ".join(joined.fingerprints))


def write_beat(row: Standing, interval: int, now: datetime) -> bool:
    """Add an interval to the worked seconds. Returns False if another process has just done so."""
    rows = Deployment.objects.filter(pk=ONLY, timeline=row.timeline, worked=row.worked, held_at=None)
    return bool(rows.update(worked=F("worked") + interval, beat_at=now))


def record_hold(hold: Hold, row: Standing, now: datetime) -> bool:
    """Record that the database was restored, for processes that know nothing of it. Returns whether this is news."""
    rows = Deployment.objects.filter(pk=ONLY, timeline=row.timeline, held_at=None)
    return bool(rows.update(held_at=now, held_reason=hold.said, known_until=hold.known_until))


def confirm_row(own: Identity, by: str, now: datetime) -> None:
    """Let the database belong to this process's deployment. A new timeline begins, in which no old note counts."""
    with transaction.atomic():
        rows = Deployment.objects.filter(pk=ONLY)
        before = row_now() if rows.select_for_update().values_list("pk").first() else None
        if before is None:
            rows.create(pk=ONLY)
        former, worked = ([before.timeline, *before.former], before.worked) if before is not None else ([], 0)
        rows.update(  # every column, because plain SQL may have damaged any of them
            former=" ".join([timeline for timeline in former if timeline][:KEPT_TIMELINES]), timeline=uuid.uuid4().hex,
            name=own.name, fingerprints=" ".join(own.fingerprints[:1]), worked=worked,
            held_at=None, held_reason="", known_until=None, confirmed_at=now, confirmed_by=by[:150], beat_at=now,
        )  # fmt: skip
