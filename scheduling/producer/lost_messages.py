"""Publishes queued rows again if the broker no longer holds their messages, for example after a queue was purged."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction

from scheduling.broker import Broker, BrokerError
from scheduling.core.lifecycle import CLAIM_GRACE, State
from scheduling.execution.publish import publish
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.processes import left_out

log = get_logger(__name__)

SUSPECTS_LIMIT = 5_000
"""The maximum number of rows of one queue that one sweep suspects to have lost their message."""

SUSPECT_AFTER = timedelta(seconds=6)
"""A row is suspected only if its `wake_at` is longer ago than this. If `wake_at` is more recent, the message may just
have reached a consumer."""


class LostMessages:
    """Finds rows whose message may be lost. A row that two successive sweeps suspect is published again.

    A queue delivers its oldest message first. So if a queue holds fewer ready messages than there are queued rows, the
    messages of the oldest rows are missing. The sweep suspects these rows. If a message was not lost after all, the
    second message is a copy, and consumers ignore copies.
    """

    def __init__(self) -> None:
        self._suspects: dict[int, datetime | None] = {}
        """Maps the id of each suspected row to the `published_at` that this process read."""

    def sweep(self, broker: Broker, now: datetime) -> int:
        """Check all queues once. Returns how many rows were published again."""
        before, self._suspects = self._suspects, {}
        if broker.embedded:
            return 0
        rows = SchedulerExecution.objects.filter(state=State.QUEUED.value, wake_at__lt=now - SUSPECT_AFTER)
        old = left_out.executions.without(rows)
        if not old.exists():
            return 0
        try:
            ready = broker.counts().ready
        except BrokerError as error:
            log.debug("The broker cannot be asked what it holds: %s", error)
            return 0
        for queue in SchedulerExecution.Queue.values:
            waiting = SchedulerExecution.objects.filter(state=State.QUEUED.value, queue=queue).count()
            excess = min(waiting - ready.get(queue, 0), SUSPECTS_LIMIT)
            if excess > 0:
                oldest = old.filter(queue=queue).order_by("wake_at", "id")
                self._suspects.update(oldest.values_list("pk", "published_at")[:excess])
        again = {pk: seen for pk, seen in self._suspects.items() if pk in before and before[pk] == seen}
        return self._publish(again, broker, now) if again else 0

    def _publish(self, suspects: dict[int, datetime | None], broker: Broker, now: datetime) -> int:
        with transaction.atomic():
            rows = SchedulerExecution.objects.filter(pk__in=list(suspects), state=State.QUEUED.value)
            # A row with a new `published_at` is left out, because another producer has already published it again.
            lost = [row for row in rows.select_for_update(skip_locked=True) if suspects[row.pk] == row.published_at]
            taken = SchedulerExecution.objects.filter(pk__in=[row.pk for row in lost])
            taken.move([State.QUEUED], State.CLAIMED, wake_at=now + CLAIM_GRACE)
        for pk in suspects:
            self._suspects.pop(pk, None)
        if lost:
            log.warning("The broker no longer holds %s queued messages; they are published again", len(lost))
        return publish(lost, broker)
