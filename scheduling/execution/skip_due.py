"""Records what fell due until an instant as skipped, for every schedule. A person has decided that it must not run."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from scheduling.conf import get_conf
from scheduling.core import skip_reasons
from scheduling.core.cron import CronError, ZoneError, zone
from scheduling.core.lifecycle import Trigger
from scheduling.core.occurrences import Missed, Plan, cron_key, date_key, plan_cron
from scheduling.core.planned import skip_all
from scheduling.core.timing import Exclusions
from scheduling.execution.due_row import COLUMNS, DueRow, due_row
from scheduling.execution.insert import execution_of, insert, skipped
from scheduling.execution.move_on import move_on
from scheduling.execution.planning import plan_anew
from scheduling.handlers.targets import target_names
from scheduling.logs import get_logger
from scheduling.models import Scheduler
from scheduling.models.exclusions import exclusions_of
from scheduling.models.own_timing import assigned_of, has_own_timing
from scheduling.models.plan import FIRST_INSTANT, PlanState
from scheduling.models.timetable import timetable_of
from scheduling.processes import left_out
from scheduling.processes.database import is_away

log = get_logger(__name__)

ROWS_PER_BATCH = 500

TOO_OLD = timedelta(days=-1)
"""The catch-up window in which no occurrence lies, not even one that falls due now."""


def skip_due(until: datetime, why: str, now: datetime) -> int:
    """Skip every occurrence up to and including `until`. Returns how many schedules had one.

    A schedule that cannot be planned is left to the producers, which set it aside.

    Args:
        why: the end of the reason, after a colon.
    """
    _plan_stale(now)
    after = done = 0
    while True:
        due = Scheduler.objects.filter(next_run_at__gte=FIRST_INSTANT, next_run_at__lte=until, status=True)
        keys = list(due.filter(pk__gt=after).order_by("pk").values_list("pk", flat=True)[:ROWS_PER_BATCH])
        if not keys:
            return done
        after = keys[-1]
        try:
            with transaction.atomic():
                done += _skip(keys, until, why, now)
        except Exception as error:
            if is_away(error):
                raise
            done += sum(_skip_alone(pk, until, why, now) for pk in keys)


def _plan_stale(now: datetime) -> None:
    """Plan what plain SQL has changed while nothing was claimed. Otherwise it would be skipped by the wrong times."""
    after = 0
    while True:
        stale = left_out.schedules.without(Scheduler.objects.filter(plan_state=PlanState.STALE, pk__gt=after))
        with transaction.atomic():
            keys = list(stale.order_by("pk").select_for_update().values_list("pk", flat=True)[:ROWS_PER_BATCH])
            if not keys:
                return
            plan_anew(keys, now)
        after = keys[-1]


def _skip_alone(pk: int, until: datetime, why: str, now: datetime) -> int:
    try:
        with transaction.atomic():
            return _skip([pk], until, why, now)
    except Exception as error:
        if is_away(error):
            raise
        log.warning("What fell due is not skipped: %s", error, extra={"scheduler_id": pk})
        return 0


def _skip(keys: list[int], until: datetime, why: str, now: datetime) -> int:
    done = _skip_once(keys, until, why, now)
    # A date that has replaced an expression may have passed, too, after the last occurrence of the expression.
    _skip_once(keys, until, why, now)
    return done


def _skip_once(keys: list[int], until: datetime, why: str, now: datetime) -> int:
    found = Scheduler.objects.filter(pk__in=keys, next_run_at__lte=until, status=True).select_for_update()
    planned: list[tuple[DueRow, Plan]] = []
    rows = [due_row(values) for values in found.values_list(*COLUMNS)]
    calendars = exclusions_of(rows)
    for row in rows:
        try:
            planned.append((row, _plan(row, until, why, calendars.get(row.id))))
        except (CronError, ZoneError):
            continue
    names = target_names({(row.target_type, row.target_id) for row, _plan in planned})
    made = [
        execution_of(
            row, now, names, execution_key=plan.missed.key, scheduled_at=plan.missed.first,
            trigger=(Trigger.CRON if row.date_time is None else Trigger.DATE).value,
            **skipped(now, plan.missed.reason, plan.missed.count),
        )
        for row, plan in planned if plan.missed is not None
    ]  # fmt: skip
    insert(made)
    move_on(planned)
    return len(planned)


def _plan(row: DueRow, until: datetime, why: str, excluded: Exclusions | None) -> Plan:
    """The plan without a run. Its next occurrence is after `until`."""
    name, due = row.timezone or get_conf().timezone, row.first
    if has_own_timing(row) and row.date_time in (None, due):
        return skip_all(assigned_of(row, excluded).since_edit(due, row.planned_at), due, until, why)
    if row.date_time is not None:
        edited = row.date_time != due  # a cron expression was replaced by a date after the occurrence fell due
        key = cron_key(due) if edited else date_key(due)
        missed = Missed(due, due, 1, key, skip_reasons.missed(due, due, 1, why, zone(name)))
        return Plan(run=None, missed=missed, next_run_at=row.date_time if edited else None)
    plan = plan_cron(timetable_of(row.schedule), name, due, until, TOO_OLD, row.planned_at)
    if (found := plan.missed) is None:
        return plan
    reason = skip_reasons.missed(found.first, found.last, found.count, why, zone(name))
    return Plan(None, Missed(found.first, found.last, found.count, found.key, reason), plan.next_run_at)
