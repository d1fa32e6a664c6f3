"""Deeds: what people did to one execution, beside what its attempts did by themselves."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType

from scheduling.admin.parts import shown, stamp
from scheduling.core.lifecycle import State
from scheduling.models import SchedulerExecution

MOST = 20
ENDED_BY_HAND = (State.CANCELLED.value, State.DISCARDED.value)


@dataclass
class Deed:
    """Who did what, when."""

    at: str
    who: str
    what: str


def deeds_of(row: SchedulerExecution) -> list[Deed]:
    """The newest entries of its trail, the newest first.

    The table of entries has no index on their object, so it is only asked for executions that show a trace
    of somebody's hand: a republish sets `retry_base`. The history page has all entries of any execution.
    """
    if not row.retry_base and row.state not in ENDED_BY_HAND:
        return []
    kind = ContentType.objects.get_for_model(SchedulerExecution)
    entries = LogEntry.objects.filter(content_type=kind, object_id=str(row.pk)).select_related("user")
    return [
        Deed(stamp(each.action_time), shown(each.user.get_username(), 60), shown(each.get_change_message(), 300))
        for each in entries.order_by("-pk")[:MOST]
    ]
