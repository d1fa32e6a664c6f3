"""Writes a revision for each change of a schedule (`models.schedule_revision`), in the transaction of the change.

Receivers of Django's signals write them, so that no way of saving or deleting a schedule can forget it. A change by
plain SQL is found by comparing the row with its newest revision: by the sweep that plans such rows, by the slow round
over all schedules (`producer.changed_schedules`), and before any other change of the same schedule. So a change is
never ascribed to the user who changes the schedule next.

The row of the schedule is locked before its revisions are read. So each revision has a number of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from django.db import DEFAULT_DB_ALIAS, transaction
from django.utils import timezone as clock

from scheduling.core.revisions import Edits, Snapshot, changed_keys, edits_of, text_of
from scheduling.core.text import clean
from scheduling.execution.revision_state import READ_COLUMNS, Stored, digest_for, stored_of
from scheduling.logs import get_logger
from scheduling.models import Scheduler, ScheduleRevision
from scheduling.models.author import FIXTURE, PLAIN_SQL, UNKNOWN, Author, present_author
from scheduling.models.schedule_revision import NAME_LENGTH, REASON_LENGTH, RevisionKind
from scheduling.processes.database import is_away, locking

log = get_logger(__name__)

AUTHOR_LENGTH = 200


def before_save(sender: Any, instance: Scheduler, using: str, **_kwargs: Any) -> None:
    """`pre_save` receiver: what plain SQL has changed before gets a revision of its own."""
    if instance.pk is None:
        instance.revision = 1  # the insert stores it, so that no update is needed
    elif (number := note_found(instance.pk, clock.now(), using=using)) is not None:
        instance.revision = number


def after_save(sender: Any, instance: Scheduler, using: str, raw: bool = False, **_kwargs: Any) -> None:
    """`post_save` receiver: write the revision of this save, if a column that it holds has changed."""
    author, at = FIXTURE if raw else present_author(), instance.changed_at or clock.now()
    with despite_bad_values(instance.pk, using):
        stored = _read(instance.pk, using)
        if stored is not None:
            instance.revision = _write(stored, _newest(instance.pk, using), author, at, using, kind=RevisionKind.MADE)


def before_delete(sender: Any, instance: Scheduler, using: str, **_kwargs: Any) -> None:
    """`pre_delete` receiver: the last revision holds the state that the schedule had."""
    now = clock.now()
    note_found(instance.pk, now, using=using)
    with despite_bad_values(instance.pk, using):
        former = _newest(instance.pk, using)
        if former is not None and former.kind != RevisionKind.DELETED:
            note_deleted(former, present_author(), now, using)


@contextmanager
def despite_bad_values(pk: int, using: str = DEFAULT_DB_ALIAS) -> Iterator[None]:
    """Let a change go on whose revision cannot be written, because plain SQL has made a row unreadable.

    Raises:
        django.db.DatabaseError: the database is away.
    """
    try:
        with transaction.atomic(using=using):
            yield
    except Exception as error:
        if is_away(error):
            raise
        log.error("The revision of a schedule cannot be written: %s", error, extra={"scheduler_id": pk})


def note_deleted(former: ScheduleRevision, author: Author, at: datetime, using: str = DEFAULT_DB_ALIAS) -> None:
    """Write that the schedule of this newest revision is deleted."""
    _insert(
        former.schedule, former.number + 1, RevisionKind.DELETED, former.schedule_name, former.zone, former.snapshot,
        {}, author, at, None, using,
    )  # fmt: skip


def note_found(pk: int, now: datetime, *, author: Author = PLAIN_SQL, using: str = DEFAULT_DB_ALIAS) -> int | None:
    """Write a revision if the row differs from its newest one. Unless an author is named, plain SQL is its author.

    A row whose columns cannot be read is left alone. Other sweeps set it aside, and say why.

    Returns:
        The number of the new revision; None if there is none.

    Raises:
        django.db.DatabaseError: the database is away.
    """
    former, number = None, None
    with despite_bad_values(pk, using):
        stored = _read(pk, using)
        if stored is None:
            return None
        former = _newest(pk, using)
        is_known = former is not None and former.kind != RevisionKind.DELETED
        # A schedule that has been planned before was made by a release that wrote no revisions.
        author = UNKNOWN if stored.was_planned and not is_known else author
        kind = RevisionKind.FIRST if author is UNKNOWN else RevisionKind.MADE
        number = _write(stored, former, author, now, using, kind=kind)
    if number is None or (former is not None and number == former.number):
        return None
    if former is not None and author is PLAIN_SQL:
        log.info("Plain SQL has changed a schedule: revision %s", number, extra={"scheduler_id": pk})
    return number


def differs(stored: Stored, former: ScheduleRevision | None) -> bool:
    """Whether the schedule has changed since its newest revision."""
    if former is None or former.kind == RevisionKind.DELETED:
        return True
    before = former.snapshot
    return stored.revision != former.number or bool(changed_keys(before, stored.since(before), digest_for(stored.pk)))


def _write(
    stored: Stored, former: ScheduleRevision | None, author: Author, at: datetime, using: str, *, kind: RevisionKind
) -> int:
    """Write a revision if something has changed. Returns the number of the newest one.

    Args:
        kind: what the first revision is about.
    """
    edits, snapshot, number = Edits(), stored.snapshot, stored.revision or 1
    due = stored.undecided
    unsure = due if due is not None and due <= at else None
    if former is not None:
        number = max(former.number, stored.revision or 0) + 1
        if at < former.at:  # the clocks of two hosts may differ
            at, unsure = former.at, min(unsure or at, at)
    if former is not None and former.kind != RevisionKind.DELETED:
        before, kind = former.snapshot, RevisionKind.CHANGED
        snapshot = stored.since(before)
        keys = changed_keys(before, snapshot, digest_for(stored.pk))
        if not keys:
            _set_number(stored, former.number, using)
            return former.number
        edits = edits_of(before, snapshot, keys)
    _insert(stored.pk, number, kind, stored.name, stored.zone, snapshot, edits, author, at, unsure, using)
    _set_number(stored, number, using)
    return number


def _set_number(stored: Stored, number: int, using: str) -> None:
    if stored.revision != number:
        Scheduler.objects.using(using).filter(pk=stored.pk).update(revision=number)


def _insert(
    pk: int, number: int, kind: RevisionKind, name: str, zone: str, snapshot: Snapshot, edits: Edits, author: Author,
    at: datetime, unsure_from: datetime | None, using: str,
) -> None:  # fmt: skip
    ScheduleRevision.objects.using(using).create(
        schedule=pk, number=number, kind=kind.value, schedule_name=clean(name, NAME_LENGTH), zone=clean(zone, 64),
        state=text_of(snapshot.state), digests=text_of(snapshot.digests), edits=text_of(edits),
        author_kind=author.kind.value, author=clean(author.name, AUTHOR_LENGTH),
        reason=clean(author.reason, REASON_LENGTH), undoes=author.undoes, at=at, unsure_from=unsure_from,
    )  # fmt: skip


def _newest(pk: int, using: str) -> ScheduleRevision | None:
    # The lock also reads what was committed after this transaction has begun.
    return locking(ScheduleRevision.objects.using(using).of(pk)).first()


def _read(pk: int, using: str) -> Stored | None:
    rows = locking(Scheduler.objects.using(using).filter(pk=pk))
    values: Mapping[str, Any] | None = rows.values(*READ_COLUMNS).first()
    return None if values is None else stored_of(values)
