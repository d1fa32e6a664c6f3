"""Edited: a schedule that is edited or paused while producers are late; what it has missed by then is put on record.

Its former columns say what was missed, and after the edit nobody knows them any more. The latest occurrence that is
due stays in `next_run_at`, for the producers.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone as clock

from scheduling.conf import get_conf
from scheduling.core.cron import CronError, ZoneError, last_between, parse
from scheduling.core.lifecycle import State, Trigger
from scheduling.core.occurrences import Missed, plan_cron
from scheduling.dispatch import target_names
from scheduling.identity import container_id
from scheduling.logs import get_logger
from scheduling.models import Scheduler, SchedulerExecution

log = get_logger(__name__)

EVER = timedelta.max
"""Whether the latest one is too old to run is for the producer to say, when it comes."""


def record_missed(
    sender: Any, instance: Scheduler, raw: bool = False, update_fields: Any = None, **_kwargs: Any
) -> None:
    """`pre_save` receiver, called when the plan changes: then `save` writes `next_run_at` too."""
    if raw or instance._state.adding or (update_fields is not None and "next_run_at" not in update_fields):
        return
    now = clock.now()
    if instance.next_run_at is None or instance.next_run_at > now:
        return
    with transaction.atomic():
        row = Scheduler.objects.select_for_update().get(pk=instance.pk)
        if row.next_run_at != instance.next_run_at or not (row.planned_status and row.planned_schedule):
            return  # a producer was faster; or there was nothing but this one instant
        tz = row.planned_timezone or get_conf().timezone
        try:
            missed = plan_cron(parse(row.planned_schedule), tz, row.next_run_at, now, EVER).missed
            latest = last_between(parse(row.planned_schedule), tz, row.next_run_at, now)
        except (CronError, ZoneError):
            return
        if missed is None or latest is None:
            return
        _insert(row, missed)
        Scheduler.objects.filter(pk=row.pk).update(next_run_at=latest)
    instance.next_run_at = latest


def _insert(row: Scheduler, missed: Missed) -> None:
    names = target_names([(row.target_type, row.target_id)])
    now = clock.now()
    execution = SchedulerExecution(
        scheduler=row, execution_key=missed.key, scheduled_at=missed.first, trigger=Trigger.CRON.value,
        type=row.target_type, target_id=row.target_id, target_name=names.get((row.target_type, row.target_id), ""),
        params=row.params, executed_at=now, finished_at=now, container_id=container_id(), state=State.SKIPPED.value,
        reason=missed.reason, missed=missed.count,
    )  # fmt: skip
    try:
        with transaction.atomic():
            execution.save(force_insert=True)
    except IntegrityError:
        log.info("Already on record, not counted again", extra={"scheduler_id": row.pk, "key": missed.key})
