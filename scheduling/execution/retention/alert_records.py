"""Removes the records of alerts: those that ended long ago, the messages about them, and error groups."""

from __future__ import annotations

from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef

from scheduling.execution.retention.api_records import BATCH, remove_in_batches
from scheduling.execution.retention.pruned import Pruned
from scheduling.models import Alert, AlertMessage, AlertNotice, KnownErrorGroup


def remove_alert_records(cutoff: datetime, done: Pruned, *, dry_run: bool, batch: int = BATCH) -> None:
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
