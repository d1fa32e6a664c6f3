"""Stores and reads the header `x-death` of the messages for which executions are made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from scheduling.core.deaths import Death, read_deaths
from scheduling.core.lifecycle import Trigger
from scheduling.models import DeathRecord, SchedulerExecution
from scheduling.processes.database import is_away
from scheduling.processes.identity import container_id

Deaths = Sequence[Death]


def record_deaths(execution_id: int, deaths: Deaths) -> None:
    """Store the deaths of an execution's message. They replace those of an earlier message of the execution."""
    if deaths:
        DeathRecord.objects.update_or_create(execution_id=execution_id, defaults={"entries": _entries(deaths)})


def record_deaths_by_key(deaths: Mapping[str, Deaths], now: datetime) -> None:
    """Store the deaths of executions that this process has just inserted in bulk.

    MySQL does not return the ids of such rows. So the rows are found by their execution keys.

    Args:
        deaths: the deaths by execution key.
        now: the column `executed_at` of the new rows.
    """
    keys = {key: found for key, found in deaths.items() if found}
    if not keys:
        return
    rows = SchedulerExecution.objects.filter(
        execution_key__in=list(keys), executed_at=now, container_id=container_id(), trigger=Trigger.MESSAGE.value
    )
    DeathRecord.objects.bulk_create(
        [
            DeathRecord(execution_id=pk, entries=_entries(keys[key]))
            for pk, key in rows.values_list("pk", "execution_key")
            if key in keys
        ],
        ignore_conflicts=True,
    )


def recorded_deaths(execution_id: int) -> Deaths:
    """The deaths of an execution's message. A record with a value that is no JSON has none.

    Raises:
        django.db.DatabaseError: the database cannot be reached.
    """
    try:
        entries = DeathRecord.objects.filter(execution=execution_id).values_list("entries", flat=True).first()
    except Exception as error:  # plain SQL can write any text, and Python's JSON parser raises several errors
        if is_away(error):
            raise
        return ()
    return read_deaths(entries)


def _entries(deaths: Deaths) -> list[dict[str, object]]:
    return [death.entry() for death in deaths]
