"""Runs a target once, without a schedule."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, NamedTuple

from django.db import models, transaction
from django.utils import timezone as clock

from scheduling.broker import Broker
from scheduling.core.lifecycle import Trigger
from scheduling.core.occurrences import manual_key
from scheduling.execution.insert import execution_of
from scheduling.execution.publish import initial_columns, publish
from scheduling.models import SchedulerExecution
from scheduling.processes.guard import guard


class _NoSchedule(NamedTuple):
    """What `execution_of` reads of a schedule."""

    target_type: str
    target_id: int
    params: Mapping[str, Any]
    id: None = None
    stay_alive: bool = False
    group_id: None = None
    queue: str = ""
    priority: str = ""


def run_once(
    target: models.Model, broker: Broker, by: str, params: Mapping[str, Any], key: uuid.UUID
) -> tuple[SchedulerExecution, bool]:
    """Run a worker, report or reminder once, now, in the queue of its handler. The execution is published on commit.

    Args:
        by: the name of the user who asked; it is recorded.
        params: params that override those of the target, for this run only.
        key: the caller's idempotency key. A second call with the same key makes no new execution.

    Returns:
        The execution, and whether this call has made it.

    Raises:
        Held: nothing may be started now (`processes.guard`).
    """
    guard.check(broker, may_claim=True)
    now, name = clock.now(), manual_key(key)
    source = _NoSchedule(str(target._meta.model_name), target.pk, dict(params))
    execution = execution_of(
        source, now, execution_key=name, scheduled_at=now, trigger=Trigger.MANUAL.value, requested_by=by[:150],
        **initial_columns(now, broker.embedded),
    )  # fmt: skip
    with transaction.atomic():
        # The unique key of executions does not hold without a schedule. The lock on the target's row replaces it.
        type(target)._default_manager.select_for_update().filter(pk=target.pk).first()
        made = SchedulerExecution.objects.filter(scheduler=None, execution_key=name).first()
        if made is not None:
            return made, False
        execution.save(force_insert=True)
        transaction.on_commit(lambda: publish([execution], broker))
    return execution, True
