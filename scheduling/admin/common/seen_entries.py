"""Which entries of the admin log a user sees: those about rows that the user sees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.contrib.admin.models import DELETION, LogEntry
from django.db import models
from django.db.models import QuerySet

from scheduling.admin.ui.text import is_number
from scheduling.models import (
    Alert,
    AlertRule,
    Backfill,
    Calendar,
    Channel,
    FailedExecution,
    Replay,
    Scheduler,
    SchedulerExecution,
)
from scheduling.models.visibility import Visibility
from scheduling.operations.audit import stored_group

ROWS_PER_QUERY = 200
MOST_READ = 2_000
"""At most this many entries are read for one page. The link to older entries then goes on from there."""

OWN = {
    Scheduler: Scheduler,
    SchedulerExecution: SchedulerExecution,
    FailedExecution: SchedulerExecution,
    Replay: Replay,
    Backfill: Backfill,
    Alert: Alert,
    AlertRule: AlertRule,
    Calendar: Calendar,
    Channel: Channel,
}
"""The models whose rows belong to groups, and the model with their table."""


def seen_entries(
    rows: QuerySet[LogEntry], kinds: Mapping[int, type[models.Model]], visible: Visibility, most: int
) -> tuple[list[LogEntry], int | None]:
    """The entries that are seen, the newest first, at most `most`.

    Args:
        rows: entries, the newest first.
        kinds: the model of each content type.

    Returns:
        The entries, and the primary key of the last entry that was read, if older ones were left unread.
    """
    if visible.groups is None:
        return list(rows[:most]), None
    found: list[LogEntry] = []
    last: int | None = None
    for _number in range(MOST_READ // ROWS_PER_QUERY):
        chunk = list((rows if last is None else rows.filter(pk__lt=last))[:ROWS_PER_QUERY])
        found += _seen(chunk, kinds, visible)
        if len(found) >= most or len(chunk) < ROWS_PER_QUERY:
            return found[:most], None
        last = chunk[-1].pk
    return found, last


def _seen(entries: Sequence[LogEntry], kinds: Mapping[int, type[models.Model]], visible: Visibility) -> list[LogEntry]:
    keys: dict[type[models.Model], set[int]] = {}
    for entry in entries:
        model = OWN.get(kinds[entry.content_type_id or 0])
        if model is not None and is_number(entry.object_id or ""):  # plain SQL can write any text
            keys.setdefault(model, set()).add(int(entry.object_id or 0))
    seen = {model: visible.seen_keys(model, found) for model, found in keys.items()}
    there = {model: _existing(model, found) for model, found in keys.items()}
    gone = _last_groups(keys, there, kinds)
    return [entry for entry in entries if _is_seen(entry, kinds, visible, seen, there, gone)]


def _is_seen(
    entry: LogEntry,
    kinds: Mapping[int, type[models.Model]],
    visible: Visibility,
    seen: Mapping[type[models.Model], set[int]],
    there: Mapping[type[models.Model], set[int]],
    gone: Mapping[int, int | None],
) -> bool:
    """The present group of a row decides. Of a deleted row, the entry of the deletion does, else the entry itself."""
    model = OWN.get(kinds[entry.content_type_id or 0])
    if model is None:
        return True
    if not is_number(entry.object_id or ""):
        return False
    key = int(entry.object_id or 0)
    if key in there.get(model, ()):
        return key in seen[model]
    if model is Replay:
        return False  # nothing tells which groups its executions had
    if model is Scheduler and not visible.shows_group(gone.get(key)):
        return False
    return visible.shows_group(stored_group(entry))


def _existing(model: type[models.Model], keys: set[int]) -> set[int]:
    return set(model._default_manager.filter(pk__in=keys).values_list("pk", flat=True))


def _last_groups(
    keys: Mapping[type[models.Model], set[int]],
    there: Mapping[type[models.Model], set[int]],
    kinds: Mapping[int, type[models.Model]],
) -> dict[int, int | None]:
    """The groups that deleted schedules had at the end, by the primary keys of the schedules."""
    lost = keys.get(Scheduler, set()) - there.get(Scheduler, set())
    types = [pk for pk, model in kinds.items() if model is Scheduler]
    if not lost:
        return {}
    entries = LogEntry.objects.filter(
        content_type__in=types, object_id__in=[str(key) for key in lost], action_flag=DELETION
    )
    return {int(entry.object_id or 0): stored_group(entry) for entry in entries}
