"""The sweep for attempts whose lease is over: their consumer has died, or cannot reach the database."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from scheduling.broker import Broker
from scheduling.core.lifecycle import State
from scheduling.core.outcome import Crashed
from scheduling.execution import transitions
from scheduling.execution.announce import announce
from scheduling.execution.publish import park, send
from scheduling.execution.rule_pauses import pause_failing_after
from scheduling.execution.settle import settle_attempt
from scheduling.handlers.run_config import RunConfigs
from scheduling.models import SchedulerExecution
from scheduling.models.execution import ExecutionQuerySet, message_of
from scheduling.models.prepared import any_of
from scheduling.pings.rows import Ended, note_ends
from scheduling.pings.sender import sender
from scheduling.policies import overlap
from scheduling.processes import left_out
from scheduling.processes.set_aside import handle_each, read_rows

ROWS_PER_SWEEP = 200


def _lost(ended_before: datetime) -> ExecutionQuerySet:
    return SchedulerExecution.objects.filter(state=State.RUNNING.value, wake_at__lt=ended_before)


ANY_LOST = any_of(lambda ended_before: _lost(ended_before).order_by("state", "queue", "wake_at"))


def recover_leases(
    broker: Broker, now: datetime, configs: RunConfigs, lost_after: float = 0.0, limit: int = ROWS_PER_SWEEP
) -> int:
    """Settle each attempt whose lease is over as crashed. The retry policy decides whether a retry follows.

    Args:
        lost_after: how many seconds before `now` the lease must have ended.

    Returns how many attempts were settled.
    """
    ended_before = now - timedelta(seconds=lost_after)
    if not ANY_LOST.rows(ended_before):
        return 0
    overdue = _lost(ended_before).order_by("wake_at")
    rows = read_rows(left_out.executions.without(overdue)[:limit], now)
    found = {execution.pk: execution for execution in rows}
    recovered: list[int] = []

    def recover(pk: int) -> None:
        if _recover(found[pk], broker, now, configs):
            recovered.append(pk)

    handle_each(found, recover, now)
    _publish_recovered([found[pk] for pk in recovered], broker, now)
    if recovered:
        overlap.look_soon(recovered, now)
    pause_failing_after({pk for run in recovered if (pk := found[run].scheduler_id) is not None}, now)
    return len(recovered)


def _publish_recovered(executions: list[SchedulerExecution], broker: Broker, now: datetime) -> None:
    """Publish the retries that are due at once, so that an idle consumer starts them at once.

    Their rows stay retrying. So a busy consumer still starts them from their rows, ahead of the messages that wait.
    """
    if broker.embedded or not executions:
        return
    keys = [execution.pk for execution in executions]
    due = SchedulerExecution.objects.filter(pk__in=keys, state=State.RETRYING.value, wake_at__lte=now)
    confirmed = send(read_rows(due, now), broker)
    if confirmed:
        due.filter(pk__in=confirmed).update(published_at=now)


def _recover(execution: SchedulerExecution, broker: Broker, now: datetime, configs: RunConfigs) -> bool:
    ended = transitions.Ended(
        execution.pk,
        execution.attempt,
        execution.started_at or now,
        execution.consumer,
        execution.pid,
        execution.progress,
    )
    message = message_of(execution)
    config = configs.get(message)
    service = config.service and execution.queue == SchedulerExecution.Queue.STANDALONE.value
    result = settle_attempt(
        ended, Crashed(lost=True), config.policy, now,
        embedded=broker.embedded, lease_before=now, service=service,
    )  # fmt: skip
    if result.state is None:
        return False  # the lease was renewed or the attempt was settled meanwhile
    if note_ends([Ended(execution.pk, ended.attempt, result.state, config.pings)], now):
        transaction.on_commit(sender.ring)
    announce(result, message, execution.target_name)
    # If a retry follows, it is due at once, except that of a service. A consumer starts the retry from its row or when
    # its message arrives. If no consumer does so within CONFIRMED_GRACE, a sweep publishes the retry again.
    if result.state is State.FAILED and not broker.embedded:
        park(execution, broker, now, result.error, result.retries)
    return True
