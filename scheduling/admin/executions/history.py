"""Reads the audit entries of one execution for the execution's page."""

from __future__ import annotations

from typing import Any

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType

from scheduling.admin.common.base import shown_entry
from scheduling.admin.ui.times import time_tag
from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution

SHOWN_ENTRIES = 20
ENDED_BY_HAND = (State.CANCELLED.value, State.DISCARDED.value)


def audit_entries(row: SchedulerExecution) -> list[tuple[str, dict[str, Any]]]:
    """The latest audit entries, the newest first. Each item is a pair: the time as HTML, and the entry as a dict.

    Django's table of entries has no index on the object's id, so the query is slow. Therefore the query runs only if
    the row shows that an operator acted: the execution is cancelled or discarded, or a republish has set `retry_base`.
    The admin's history page of an execution always shows all audit entries of that execution.
    """
    if not row.retry_base and row.state not in ENDED_BY_HAND:
        return []
    kind = ContentType.objects.get_for_model(SchedulerExecution)
    entries = LogEntry.objects.filter(content_type=kind, object_id=str(row.pk)).select_related("user")
    newest = entries.order_by("-pk")[:SHOWN_ENTRIES]
    return [(time_tag(entry.action_time), shown_entry(entry, SchedulerExecution)) for entry in newest]
