"""The sweeps of the producers. A sweep finds rows whose next step is late, and does this step.

Every sweep has a limit and returns how many rows it handled. Sweeps run in the loop of every producer and are never
scheduled jobs. Any number of producers may sweep at once, because every change is a compare-and-set. Only one
producer at a time searches for lost messages, because it counts rows, and only one tallies.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from scheduling.broker import Broker
from scheduling.core.lifecycle import CLAIM_GRACE, CONFIRMED_GRACE, RETRY_GRACE, State
from scheduling.execution import backfill_sweep
from scheduling.execution.planning import later, plan_anew
from scheduling.execution.publish import publish
from scheduling.execution.skip_tallying import tally_skips
from scheduling.execution.start_deadlines import sweep_deadlines
from scheduling.execution.tallying import tally_waiting
from scheduling.handlers.run_config import RunConfigs
from scheduling.inbox import replay_sweep
from scheduling.logs import get_logger
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.execution import ExecutionQuerySet
from scheduling.models.plan import PlanState
from scheduling.models.used_queues import in_used_queues
from scheduling.processes import left_out
from scheduling.processes.database import is_away
from scheduling.processes.guard import guard
from scheduling.processes.set_aside import handle_each, read_rows
from scheduling.producer.after_waits import look_at_waiting
from scheduling.producer.blocked_runs import sweep_blocked
from scheduling.producer.changed_calendars import sweep_calendars
from scheduling.producer.changed_schedules import ChangedSchedules
from scheduling.producer.ended_pauses import wake_after_pauses
from scheduling.producer.freed_places import give_freed_places
from scheduling.producer.lost_leases import recover_leases
from scheduling.producer.lost_messages import LostMessages
from scheduling.producer.open_breakers import let_through
from scheduling.producer.quiet import ANY_STALE, is_quiet
from scheduling.producer.stopped_services import end_stopped_services

log = get_logger(__name__)

ROWS_PER_SWEEP = 200
ROWS_PER_PUBLISH = 1_000
PUBLISH_SECONDS = 2.0
"""The longest time for which one sweep publishes a backlog, for example after the broker was unreachable."""


@dataclass
class Swept:
    """The result of one call of `sweep`: how many rows each sweep has handled."""

    planned: int = 0
    changed: int = 0
    leases: int = 0
    claims: int = 0
    retries: int = 0
    lost: int = 0
    replayed: int = 0
    backfilled: int = 0
    stopped: int = 0
    woken: int = 0
    expired: int = 0
    let_in: int = 0
    unblocked: int = 0
    tallied: int = 0


def sweep(
    broker: Broker,
    now: datetime,
    configs: RunConfigs | None = None,
    lost_messages: LostMessages | None = None,
    changed: ChangedSchedules | None = None,
    *,
    lost_after: float | None = 0.0,
) -> Swept:
    """Run every sweep once.

    Args:
        lost_messages: remembers between two calls which rows seem to have no message. With None, the sweep for lost
            messages is left out, because another producer does it.
        changed: the slow round over all schedules; None: it is left out.
        lost_after: how many seconds before `now` a lease must have ended to be taken for lost. None: no lease is, since
            the owners could not renew them (`processes.database_access`).

    Raises:
        Held: nothing may be started or published (`processes.guard`).
    """
    guard.check(broker, may_claim=True)
    configs = configs or RunConfigs(time.monotonic)
    quiet = is_quiet(now, lost_after)

    def seldom(sweep_once: Callable[[], int]) -> int:
        return 0 if quiet else sweep_once()

    return Swept(
        planned=seldom(lambda: plan_stale(now) + sweep_calendars(now)),
        changed=changed.turn(now) if changed is not None else 0,
        leases=seldom(lambda: recover_leases(broker, now, configs, lost_after) if lost_after is not None else 0),
        claims=_while_full(publish_claimed, broker, now),
        retries=_while_full(publish_retries, broker, now),
        lost=lost_messages.sweep(broker, now) if lost_messages is not None else 0,
        replayed=seldom(lambda: replay_sweep.sweep(broker, now)),
        backfilled=seldom(lambda: backfill_sweep.sweep(broker, now)),
        stopped=end_stopped_services(now),
        woken=wake_after_pauses(now) + seldom(lambda: let_through(now)) + give_freed_places(broker, now),
        expired=seldom(lambda: sweep_deadlines(now)),
        let_in=sweep_blocked(broker, now),
        unblocked=look_at_waiting(broker, now),
        tallied=tally_waiting(now) + seldom(lambda: tally_skips(now)),
    )


def _while_full(publish_batch: Callable[[Broker, datetime], int], broker: Broker, now: datetime) -> int:
    """Publish batches until a batch is not full or PUBLISH_SECONDS are over. Returns how many rows were published."""
    count, until = 0, time.monotonic() + PUBLISH_SECONDS
    while True:
        done = publish_batch(broker, now)
        count += done
        if done < ROWS_PER_PUBLISH or time.monotonic() > until:
            return count


def plan_stale(now: datetime, limit: int = ROWS_PER_SWEEP) -> int:
    """Plan the schedules that plain SQL has changed. Returns how many were planned."""
    if not ANY_STALE.rows():  # without a lock: most sweeps find none
        return 0
    begun = time.monotonic()
    with transaction.atomic():
        rows = left_out.schedules.without(Scheduler.objects.filter(plan_state=PlanState.STALE))
        stale = rows.order_by("id").select_for_update(skip_locked=True)
        ids = list(stale.values_list("pk", flat=True)[:limit])
        if not ids:
            return 0
        planned = plan_anew(ids, later(now, begun))
    log.info("Schedules planned that are new or were changed outside of the admin: %s", planned)
    return planned


def _locked(condition: Q, limit: int, now: datetime) -> list[SchedulerExecution]:
    """Lock and return rows that match the condition, oldest `wake_at` first.

    Rows that another process has locked are left out.
    """
    rows = left_out.executions.without(SchedulerExecution.objects.filter(condition)).order_by("wake_at")
    return read_rows(rows.select_for_update(skip_locked=True)[:limit], now)


def _moved(
    condition: Q, limit: int, now: datetime, move: Callable[[ExecutionQuerySet], object]
) -> list[SchedulerExecution]:
    """Lock the rows that match the condition, move them, and return them.

    If the database refuses to change one of them, each row is moved alone, and the refused row is set aside.
    """
    try:
        with transaction.atomic():
            found = _locked(condition, limit, now)
            move(_rows([execution.pk for execution in found]))
        return found
    except Exception as error:
        if is_away(error):
            raise
    moved: list[SchedulerExecution] = []

    def alone(pk: int) -> None:
        locked = _locked(condition & Q(pk=pk), 1, now)
        move(_rows([execution.pk for execution in locked]))
        moved.extend(locked)

    matching = left_out.executions.without(SchedulerExecution.objects.filter(condition)).order_by("wake_at")
    handle_each(list(matching.values_list("pk", flat=True)[:limit]), alone, now)
    return moved


def _rows(keys: list[int]) -> ExecutionQuerySet:
    return ExecutionQuerySet(SchedulerExecution).filter(pk__in=keys)


def publish_claimed(broker: Broker, now: datetime, limit: int = ROWS_PER_PUBLISH) -> int:
    """Publish claimed rows whose `wake_at` has passed. Returns how many were published.

    A row stays claimed, for example, if its producer died before the confirm or if the broker could not be reached.
    """

    def move(rows: ExecutionQuerySet) -> None:
        # Change `wake_at` first, so that no other sweep publishes the same rows at the same time.
        if broker.embedded:  # another transport was configured when these rows were claimed
            rows.move([State.CLAIMED], State.QUEUED, wake_at=now, published_at=now)
        else:
            rows.update(wake_at=now + CLAIM_GRACE, published_at=None)

    if (used := in_used_queues(State.CLAIMED)) is None:
        return 0
    overdue = _moved(used & Q(state=State.CLAIMED.value, wake_at__lt=now), limit, now, move)
    return publish(overdue, broker)


def publish_retries(broker: Broker, now: datetime, limit: int = ROWS_PER_PUBLISH) -> int:
    """Publish retries whose message was never confirmed or did not arrive in time. Returns how many were published."""
    if broker.embedded or (used := in_used_queues(State.RETRYING)) is None:
        return 0
    late = Q(published_at=None, wake_at__lt=now - RETRY_GRACE) | Q(wake_at__lt=now - CONFIRMED_GRACE)

    def move(rows: ExecutionQuerySet) -> None:
        rows.move([State.RETRYING], State.CLAIMED, wake_at=now + CLAIM_GRACE, published_at=None)

    overdue = _moved(used & late & Q(state=State.RETRYING.value, wake_at__lt=now - RETRY_GRACE), limit, now, move)
    return publish(overdue, broker)
