"""What is on record for the instants of a backfill."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from scheduling.core.lifecycle import State
from scheduling.core.occurrences import backfill_key, cron_key
from scheduling.models import SchedulerExecution

INSTANTS_PER_QUERY = 400


class Recorded(NamedTuple):
    """An execution that is on record for an instant."""

    pk: int
    state: str


class OnRecord(NamedTuple):
    """The executions on record for the instants of one schedule.

    Args:
        ran: those of the occurrences themselves, if they were not skipped.
        made: those that backfills have made.
    """

    ran: dict[datetime, Recorded]
    made: dict[datetime, Recorded]


def on_record(schedule: int, instants: Sequence[datetime]) -> OnRecord:
    """Look up the executions by their keys. The unique index answers, however many executions the schedule has."""
    found = OnRecord({}, {})
    for start in range(0, len(instants), INSTANTS_PER_QUERY):
        some = instants[start : start + INSTANTS_PER_QUERY]
        own, made = ({key(instant): instant for instant in some} for key in (cron_key, backfill_key))
        rows = SchedulerExecution.objects.filter(scheduler=schedule, execution_key__in=[*own, *made])
        for pk, key, state in rows.values_list("pk", "execution_key", "state"):
            if key in made:
                found.made[made[key]] = Recorded(pk, state)
            elif key in own and state != State.SKIPPED.value:
                found.ran[own[key]] = Recorded(pk, state)
    return found
