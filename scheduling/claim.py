"""Claim what is due: insert the execution's row; the unique key (scheduler, execution key) arbitrates.

Any number of producers may claim at once. SKIP LOCKED only keeps them out of each other's way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction

from scheduling.conf import get_conf
from scheduling.core.cron import CronError, ZoneError, next_after, parse
from scheduling.core.lifecycle import State, Trigger
from scheduling.core.occurrences import Due, Plan, cron_key, date_key, plan_cron, plan_date
from scheduling.dispatch import context_of, target_names, waiting
from scheduling.identity import container_id
from scheduling.logs import get_logger
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.scheduler import PLAN

log = get_logger(__name__)

BATCH = 1000

_COLUMNS = (
    "id", "schedule", "date_time", "timezone", "status", "stay_alive", "params",
    "report_id", "worker_id", "reminder_id", "next_run_at", "plan_stale",
)  # fmt: skip


@dataclass(frozen=True)
class _Row:
    """The columns of a due Scheduler; tuples are three times cheaper than model instances."""

    id: int
    schedule: str
    date_time: datetime | None
    timezone: str
    status: bool
    stay_alive: bool
    params: dict[str, Any]
    report_id: int | None
    worker_id: int | None
    reminder_id: int | None
    next_run_at: datetime
    plan_stale: int

    @property
    def target(self) -> tuple[str, int | None]:
        for name in ("report", "worker", "reminder"):
            if (found := getattr(self, f"{name}_id")) is not None:
                return name, found
        return "", None


@dataclass
class Dispatched:
    """What one batch did; `full` says that more may be due."""

    claimed: list[SchedulerExecution] = field(default_factory=list)
    skipped: int = 0
    broken: int = 0
    full: bool = False


def next_due() -> datetime | None:
    """The earliest `next_run_at`: one index look-up, whatever the number of schedules."""
    return (
        Scheduler.objects.filter(next_run_at__isnull=False)
        .order_by("next_run_at")
        .values_list("next_run_at", flat=True)
        .first()
    )


def claim_due(now: datetime, *, embedded: bool, limit: int = BATCH) -> Dispatched:
    """Claim one batch of what is due, in one transaction; publishing is the caller's next step."""
    done = Dispatched()
    with transaction.atomic():
        due = (
            Scheduler.objects.filter(next_run_at__lte=now)
            .order_by("next_run_at", "id")
            .select_for_update(skip_locked=True)
            .values_list(*_COLUMNS)[:limit]
        )
        rows = [_Row(*values) for values in due]
        done.full = len(rows) == limit
        if rows:
            _claim(rows, now, embedded, done)
    for execution in done.claimed:
        log.debug("Claimed", extra=context_of(execution))
    return done


def _claim(rows: Sequence[_Row], now: datetime, embedded: bool, done: Dispatched) -> None:
    plans: dict[tuple[Any, ...], Plan] = {}
    names = target_names({row.target for row in rows})
    made: list[SchedulerExecution] = []
    moved: dict[datetime | None, list[int]] = defaultdict(list)
    finished: list[int] = []
    for row in rows:
        if row.plan_stale and row.status:
            # Plain SQL changed it and the sweep has not passed yet: the new columns decide.
            plan_anew([row.id], now)
            continue
        try:
            plan = _plan(row, now, plans)
        except (CronError, ZoneError) as error:
            _set_aside(row.id, str(error))
            done.broken += 1
            continue
        made.extend(_executions(row, plan, names, now, embedded))
        if row.date_time is not None and row.status and plan.next_run_at is None:
            finished.append(row.id)
        else:
            moved[plan.next_run_at].append(row.id)
    for execution in _insert(made):
        if execution.state == State.SKIPPED.value:
            done.skipped += 1
        else:
            done.claimed.append(execution)
    for instant, ids in moved.items():
        Scheduler.objects.filter(pk__in=ids).update(next_run_at=instant)
    if finished:
        # A one-time schedule switches itself off.
        Scheduler.objects.filter(pk__in=finished).update(next_run_at=None, status=False, planned_status=False)


def _plan(row: _Row, now: datetime, plans: dict[tuple[Any, ...], Plan]) -> Plan:
    if not row.status:
        return Plan(run=None, missed=None, next_run_at=None)
    conf = get_conf()
    zone_name = row.timezone or conf.timezone
    catch_up = timedelta(seconds=conf.catch_up_seconds)
    if row.date_time is not None and row.date_time != row.next_run_at:
        # It was a cron schedule when this instant fell due, and was edited before it was claimed.
        return Plan(run=Due(row.next_run_at, cron_key(row.next_run_at)), missed=None, next_run_at=row.date_time)
    key = (row.schedule, row.date_time, zone_name, row.next_run_at)
    if key not in plans:
        plans[key] = (
            plan_date(row.date_time, now, catch_up)
            if row.date_time is not None
            else plan_cron(parse(row.schedule), zone_name, row.next_run_at, now, catch_up)
        )
    return plans[key]


def _executions(
    row: _Row, plan: Plan, names: dict[tuple[str, int | None], str], now: datetime, embedded: bool
) -> Iterable[SchedulerExecution]:
    trigger = Trigger.DATE if row.date_time is not None else Trigger.CRON
    type_, target_id = row.target
    queue = SchedulerExecution.Queue.STANDALONE if row.stay_alive else SchedulerExecution.Queue.MAIN

    def execution(key: str, instant: datetime, **columns: Any) -> SchedulerExecution:
        return SchedulerExecution(
            scheduler_id=row.id, execution_key=key, scheduled_at=instant, trigger=trigger.value, type=type_,
            target_id=target_id, target_name=names.get((type_, target_id), ""), params=row.params,
            executed_at=now, container_id=container_id(), queue=queue, **columns,
        )  # fmt: skip

    if not row.status:
        instant = row.next_run_at
        key = date_key(instant) if row.date_time is not None else cron_key(instant)
        yield execution(
            key, instant, state=State.SKIPPED.value, finished_at=now,
            reason="It was switched off after it had fallen due and before a producer claimed it.",
        )  # fmt: skip
        return
    if plan.missed is not None:
        yield execution(
            plan.missed.key, plan.missed.first, state=State.SKIPPED.value, finished_at=now,
            reason=plan.missed.reason, missed=plan.missed.count,
        )  # fmt: skip
    if plan.run is not None:
        yield execution(plan.run.key, plan.run.instant, **waiting(now, embedded))


def _insert(made: list[SchedulerExecution]) -> list[SchedulerExecution]:
    """Insert the rows; a key that is taken is an occurrence that is on record already."""
    try:
        with transaction.atomic():
            SchedulerExecution.objects.bulk_create(made, batch_size=500)
    except IntegrityError:
        # Rare: a restored backup, or a row planned twice. One by one, each in its own savepoint.
        won = []
        for execution in made:
            try:
                with transaction.atomic():
                    execution.pk = None
                    execution.save(force_insert=True)
            except IntegrityError:
                if not SchedulerExecution.objects.filter(
                    scheduler=execution.scheduler_id, execution_key=execution.execution_key
                ).exists():
                    raise
                log.info("Already on record, not claimed again", extra=context_of(execution))
            else:
                won.append(execution)
        return won
    if made and made[-1].pk is None:
        # MySQL returns no keys for a bulk insert.
        ids = {
            (scheduler, key): pk
            for pk, scheduler, key in SchedulerExecution.objects.filter(
                container_id=container_id(), executed_at=made[0].executed_at,
                scheduler_id__in={execution.scheduler_id for execution in made},
            ).values_list("pk", "scheduler_id", "execution_key")
        }  # fmt: skip
        for execution in made:
            execution.pk = ids[execution.scheduler_id, execution.execution_key]
    return made


def _set_aside(scheduler_id: int, error: str) -> None:
    """Report a row that cannot be planned, once; the next change of the row makes it stale again."""
    row = Scheduler.objects.filter(pk=scheduler_id).values(*PLAN).get()
    twins = {f"planned_{name}": value for name, value in row.items()}
    Scheduler.objects.filter(pk=scheduler_id).update(next_run_at=None, plan_error=error[:500], **twins)
    log.error("Schedule cannot be planned and is set aside: %s", error, extra={"scheduler_id": scheduler_id})


def plan_anew(ids: Iterable[int], now: datetime) -> int:
    """Plan rows again from their columns (a sweep, for plain SQL edits); returns how many."""
    count = 0
    for row in Scheduler.objects.filter(pk__in=list(ids)):
        try:
            if row.next_run_at is not None and not _fires_at(row, row.next_run_at):
                # Nobody can say whether the edit came before or after this instant: the new
                # columns decide whether it is an occurrence.
                row.next_run_at = None
            row.plan(now)
        except (CronError, ZoneError, ValueError) as error:
            _set_aside(row.pk, str(error))
            continue
        columns = ["next_run_at", "plan_error", *(f"planned_{name}" for name in PLAN)]
        Scheduler.objects.filter(pk=row.pk).update(**{name: getattr(row, name) for name in columns})
        count += 1
    return count


def _fires_at(row: Scheduler, instant: datetime) -> bool:
    if row.date_time is not None:
        return row.date_time == instant
    return next_after(parse(row.schedule), row.zone_name, instant - timedelta(minutes=1)) == instant
