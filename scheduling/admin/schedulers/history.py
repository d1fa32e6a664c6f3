"""The history of a schedule: its revisions, and what else users have done with it, as one list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, overload

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q, QuerySet
from django.utils.text import capfirst

from scheduling.admin.common.base import shown_change, shown_entry
from scheduling.core.known_sentences import for_reader
from scheduling.models import Scheduler, ScheduleRevision
from scheduling.models.schedule_revision import RevisionKind
from scheduling.operations.revision_words import changes_in_words, names_in, what, who

NEWEST_FIRST = ("-action_time", "-pk")


@dataclass
class Line:
    """One line of the list.

    Args:
        shown: see `shown_entry`. A revision also has `number`, `reason`, `undo` and `restore`.
    """

    action_time: datetime
    shown: dict[str, Any]


class History(Sequence[Line]):
    """The lines, the newest first. Only the lines of the wanted page are read.

    Django's log has an entry for each edit in the admin, too. It would repeat what the revision says, so it is left
    out. The entries from before the first revision stay.
    """

    def __init__(self, row: Scheduler) -> None:
        self._revisions = ScheduleRevision.objects.of(row.pk)
        self._present = row.revision
        self._entries = _entries(row, self._revisions.order_by("number").first())

    def __len__(self) -> int:
        return self._revisions.count() + self._entries.count()

    @overload
    def __getitem__(self, index: int) -> Line: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Line]: ...
    def __getitem__(self, index: int | slice) -> Line | Sequence[Line]:
        if isinstance(index, int):
            return self[index : index + 1][0]
        start, stop = index.start or 0, index.stop if index.stop is not None else len(self)
        keys = [(at, 1, pk) for at, pk in self._revisions.values_list("at", "pk")[:stop]]
        keys += [(at, 0, pk) for at, pk in self._entries.values_list("action_time", "pk")[:stop]]
        chosen = list(islice(sorted(keys, reverse=True), start, stop))
        revisions = _revision_lines([pk for _at, is_revision, pk in chosen if is_revision], self._present)
        entries = _entry_lines([pk for _at, is_revision, pk in chosen if not is_revision])
        lines = ((revisions if is_revision else entries).get(pk) for _at, is_revision, pk in chosen)
        return [line for line in lines if line is not None]


def _entries(row: Scheduler, first: ScheduleRevision | None) -> QuerySet[LogEntry]:
    """The entries of Django's log that no revision repeats."""
    kind = ContentType.objects.get_for_model(Scheduler)
    entries = LogEntry.objects.filter(content_type=kind, object_id=str(row.pk)).order_by(*NEWEST_FIRST)
    if first is None:
        return entries
    # `operations.audit` writes the messages. Inside a text, JSON escapes the quotation marks.
    edits, runs = Q(change_message__contains='"edits": [{'), Q(change_message__contains='"text": "run now')
    added = Q(action_time__gte=first.at) & edits & ~runs
    return entries.exclude(added)


def _entry_lines(keys: Sequence[int]) -> dict[int, Line]:
    entries = LogEntry.objects.filter(pk__in=keys).select_related("user")
    return {entry.pk: Line(entry.action_time, shown_entry(entry, Scheduler)) for entry in entries}


def _revision_lines(keys: Sequence[int], present: int | None) -> dict[int, Line]:
    revisions = list(ScheduleRevision.objects.filter(pk__in=keys))
    names = names_in(revisions)
    return {
        row.pk: Line(
            row.at,
            {
                "who": who(row),
                "text": capfirst(what(row)),
                "edits": [shown_change(change, Scheduler) for change in changes_in_words(row, names)],
                "number": row.number,
                "reason": for_reader(row.reason, 500),
                "undo": row.kind == RevisionKind.CHANGED,
                "restore": row.number != present,
            },
        )
        for row in revisions
    }
