"""Removes the records of alerts: those that ended long ago, the messages about them, and error groups."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef

from scheduling.core.alerts import error_group_key
from scheduling.core.chunks import chunks
from scheduling.core.lifecycle import State
from scheduling.execution.retention.api_records import BATCH, remove_in_batches
from scheduling.execution.retention.pruned import Pruned
from scheduling.logs import get_logger
from scheduling.models import Alert, AlertMessage, AlertNotice, KnownErrorGroup, SchedulerExecution
from scheduling.processes.database import is_away

log = get_logger(__name__)


def remove_alert_records(cutoff: datetime, now: datetime, done: Pruned, *, dry_run: bool, batch: int = BATCH) -> None:
    """Remove the alerts that ended before the cutoff, with their notices, and the messages that no notice needs.

    A message stays while an open alert was told by it. Without it, its notice would wait to be sent again.
    """
    over = Alert.objects.filter(ended_at__lt=cutoff)
    done.alerts = over.count() if dry_run else _remove_alerts(cutoff, batch)
    needed = Exists(AlertNotice.objects.filter(message=OuterRef("pk")))
    messages = AlertMessage.objects.filter(~needed, ended_at__lt=cutoff)
    groups = KnownErrorGroup.objects.filter(left_at__lt=cutoff)
    if not dry_run:
        remove_in_batches(messages, batch)
        _note_gone_groups(now)
        remove_in_batches(groups, batch)


def _remove_alerts(cutoff: datetime, batch: int) -> int:
    removed = 0
    over = Alert.objects.filter(ended_at__lt=cutoff).order_by("pk")
    while keys := list(over.values_list("pk", flat=True)[:batch]):
        with transaction.atomic():
            notices = AlertNotice.objects.filter(alert__in=keys)
            notices._raw_delete(notices.db)
            count = Alert.objects.filter(pk__in=keys)._raw_delete(notices.db)
        removed += count
        if not count:
            break  # another pass removes them
    return removed


def _note_gone_groups(now: datetime) -> None:
    """Record which error groups have no failure in the inbox any more.

    The evaluation of the alerts does so only while the inbox has few failures. Otherwise these rows would stay forever.
    """
    gone = set(KnownErrorGroup.objects.filter(left_at=None).values_list("key", flat=True))
    if not gone:
        return
    failures = SchedulerExecution.objects.in_state(State.FAILED).exclude(fingerprint="").order_by()
    try:
        with transaction.atomic():
            for fingerprint, group in failures.values_list("fingerprint", "group").distinct().iterator():
                gone.discard(error_group_key(fingerprint, group))
    except Exception as error:
        if is_away(error):
            raise
        log.warning("The error groups of the inbox cannot be read: %s: %s", type(error).__name__, error)
        return
    for some in chunks(sorted(gone)):
        KnownErrorGroup.objects.filter(key__in=some, left_at=None).update(left_at=now, is_back=False)
