"""Lost: queued rows whose message the broker no longer holds: wiped, purged, or kept by a dead consumer."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from scheduling.broker import Broker, BrokerError
from scheduling.core.lifecycle import State
from scheduling.dispatch import publish
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.settlement import CLAIM_GRACE

log = get_logger(__name__)

BATCH = 5_000

AGE = timedelta(seconds=6)
"""A younger row's message may be on its way between the broker and the start."""


class Lost:
    """Suspects rows in one sweep, and publishes again those it suspects in two sweeps in a row.

    A queue is first in, first out: if more rows wait than the broker has messages ready, it is the oldest
    that have none. A wrong suspicion costs one copy, which the compare-and-set of the start ignores.
    """

    def __init__(self) -> None:
        self._suspects: dict[int, datetime | None] = {}
        """By row, when its message was published as this process saw it."""

    def sweep(self, broker: Broker, now: datetime) -> int:
        """One bounded batch; returns how many were published again."""
        before, self._suspects = self._suspects, {}
        if broker.embedded:
            return 0
        old = SchedulerExecution.objects.filter(state=State.QUEUED.value, wake_at__lt=now - AGE)
        if not old.exists():
            return 0
        try:
            ready = broker.counts().ready
        except BrokerError as error:
            log.debug("The broker cannot be asked what it holds: %s", error)
            return 0
        for queue in SchedulerExecution.Queue.values:
            waiting = SchedulerExecution.objects.filter(state=State.QUEUED.value, queue=queue).count()
            excess = min(waiting - ready.get(queue, 0), BATCH)
            if excess > 0:
                oldest = old.filter(queue=queue).order_by("wake_at", "id")
                self._suspects.update(oldest.values_list("pk", "published_at")[:excess])
        again = {pk: seen for pk, seen in self._suspects.items() if pk in before and before[pk] == seen}
        return self._publish(again, broker, now) if again else 0

    def _publish(self, suspects: dict[int, datetime | None], broker: Broker, now: datetime) -> int:
        with transaction.atomic():
            rows = SchedulerExecution.objects.filter(pk__in=list(suspects), state=State.QUEUED.value)
            # Published meanwhile by another producer: then its time has changed.
            lost = [row for row in rows.select_for_update(skip_locked=True) if suspects[row.pk] == row.published_at]
            SchedulerExecution.objects.filter(pk__in=[row.pk for row in lost]).update(
                state=State.CLAIMED.value, wake_at=now + CLAIM_GRACE
            )
        for pk in suspects:
            self._suspects.pop(pk, None)
        if lost:
            log.warning("The broker no longer holds %s queued messages; they are published again", len(lost))
        return publish(lost, broker)
