"""The failed inbox: nothing leaves it but by an operator's action or a retention rule.

Republish and discard change the row first, by a compare-and-set, so that a second click does
nothing; the broker is told afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone as clock

from scheduling.broker import Broker
from scheduling.core.lifecycle import State
from scheduling.dispatch import publish
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.settlement import CLAIM_GRACE

log = get_logger(__name__)


def republish(ids: Iterable[int], broker: Broker, by: str, now: datetime | None = None) -> list[int]:
    """Run failed executions again, with the retry count at zero; attempts go on counting.

    Args:
        by: who asked, for the record.

    Returns:
        The ids that were republished; another operator may have been faster with the others.
    """
    now = now or clock.now()
    columns: dict[str, Any] = {"state": State.CLAIMED.value, "wake_at": now + CLAIM_GRACE}
    if broker.embedded:
        columns = {"state": State.QUEUED.value, "wake_at": now, "published_at": now}
    done: list[int] = []
    for pk in ids:
        with transaction.atomic():
            moved = SchedulerExecution.objects.filter(pk=pk, state=State.FAILED.value).update(
                **columns,
                retry_base=F("attempt"),
                reason=f"Republished by {by}.",
                finished_at=None,
                cancel_requested_by="",
            )
        if moved:
            done.append(pk)
    if done:
        publish(list(SchedulerExecution.objects.filter(pk__in=done, state=State.CLAIMED.value)), broker)
        log.info("Republished %s failed executions", len(done), extra={"by": by})
    return done


def discard(ids: Iterable[int], by: str, reason: str, now: datetime | None = None) -> list[int]:
    """Drop failed executions from the inbox; the rows stay, with the reason, until retention.

    Raises:
        ValueError: without a reason.
    """
    if not reason.strip():
        raise ValueError("Say why it is discarded: the next person will ask.")
    now = now or clock.now()
    text = f"Discarded by {by}: {reason.strip()}"[:2000]
    done = [
        pk
        for pk in ids
        if SchedulerExecution.objects.filter(pk=pk, state=State.FAILED.value).update(
            state=State.DISCARDED.value, reason=text, finished_at=now
        )
    ]
    if done:
        log.info("Discarded %s failed executions", len(done), extra={"by": by})
    return done
