"""Replays failed executions. One execution, the canary, is republished first. The others follow if the canary succeeds.

The operator's request stores the selected executions and sends the canary. A sweep in the producers sends the other
executions (`replay_sweep`). Each step is one transaction with a compare-and-set of the replay's row, so no step is done
twice.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone as clock

from scheduling.broker import Broker
from scheduling.core import inbox_sentences as say
from scheduling.core.lifecycle import State
from scheduling.execution.run_now import overlap_now
from scheduling.inbox import actions as inbox_actions
from scheduling.logs import get_logger
from scheduling.models import Replay, ReplayChunk, ReplayGroup, SchedulerExecution
from scheduling.models.parts import rows_in_parts
from scheduling.models.replay import OPEN
from scheduling.processes.guard import guard
from scheduling.signals import executions_replayed

log = get_logger(__name__)

NOTHING_LEFT = say.NOTHING_LEFT.format()
NOT_OVER = say.NOT_OVER.format()

Chosen = Iterable[list[tuple[int, int]]]
"""The selected executions, in chunks. Each chunk is a list of pairs. A pair is an execution's id and the number of its
last attempt when the replay was requested."""


def start(
    key: uuid.UUID, chosen: Chosen, broker: Broker, user: Any, selection: str, minutes: int = 0,
    now: datetime | None = None,
) -> Replay | None:  # fmt: skip
    """Store the selected executions and send the canary. The canary is the oldest selected execution that can run.

    Args:
        chosen: the selected executions, in the order of their ids.
        key: the idempotency key of the confirmation page.
        selection: a description of the selection.
        minutes: over how many minutes the other executions are sent, after the canary has succeeded. With 0, they are
            sent as fast as possible.

    Returns:
        The replay; None if `key` was used before. If no selected execution could be run, the replay is already stopped.

    Raises:
        Held: nothing may be started now (`processes.guard`).
    """
    guard.check(broker, may_claim=True)
    now = now or clock.now()
    replay = Replay(
        key=key, user=user if user.pk else None, requested_by=user.get_username()[:150], created_at=now,
        selection=selection[:500], minutes=minutes, state=Replay.State.COLLECTING.value,
    )  # fmt: skip
    try:
        with transaction.atomic():
            replay.save(force_insert=True)
    except IntegrityError:
        if not Replay.objects.filter(key=key).exists():
            raise
        return None
    # Each chunk is stored in a transaction of its own. So a large selection causes no long lock and is never completely
    # in memory.
    for pairs in chosen:
        # First the groups: a user who may not see one of the executions must not see the replay at any time.
        _note_groups(replay, [pk for pk, _attempt in pairs])
        ReplayChunk.objects.create(replay=replay, first=replay.total, items=[list(pair) for pair in pairs])
        replay.total += len(pairs)
    held = set[int]()
    canary = _send_canary(replay, broker, now, held)
    replay.refresh_from_db()
    if canary is not None:
        inbox_actions.publish_requeued([canary], broker)
        inbox_actions.take_out_parked(broker, [canary])
        log.info("Replay %s: %s goes first, of %s", replay.pk, canary.pk, replay.total, extra={"by": str(user)})
    else:
        stop(replay.pk, NOT_OVER if held else NOTHING_LEFT, now)
        replay.refresh_from_db()
    return replay


def _note_groups(replay: Replay, keys: list[int]) -> None:
    """Record the groups of these executions, for `Visibility.replays`."""
    rows = SchedulerExecution.objects.filter(pk__in=keys, group__isnull=False).order_by()
    groups = rows.values_list("group_id", flat=True).distinct()
    ReplayGroup.objects.bulk_create([ReplayGroup(replay=replay, group_id=pk) for pk in groups], ignore_conflicts=True)


def _send_canary(replay: Replay, broker: Broker, now: datetime, held: set[int]) -> SchedulerExecution | None:
    """Send the first execution that can run; None if there is none.

    Args:
        held: collects the schedules that run alone and have an open execution. Their failures are tried only once,
            because there may be many of them.
    """
    reason = say.REPUBLISHED_CANARY.format(by=replay.requested_by, replay=replay.pk)
    # The chunks are stored in the order of `first`.
    for chunk in rows_in_parts(replay.chunks.all(), size=1):
        attempts = dict(chunk.items)
        rows = SchedulerExecution.objects.filter(pk__in=attempts, state=State.FAILED.value).exclude(type="")
        for pk, schedule in rows.order_by("pk").values_list("pk", "scheduler"):
            if schedule in held:
                continue
            with transaction.atomic():
                # Change the replay's row first. If an operator has stopped the replay, the update finds no row, and
                # nothing is sent.
                if not Replay.objects.filter(pk=replay.pk, state=Replay.State.COLLECTING.value).update(
                    state=Replay.State.WAITING.value, total=replay.total, canary=pk, canary_attempt=attempts[pk],
                    sent=1,
                ):  # fmt: skip
                    return None
                moved = inbox_actions.requeue_in_transaction({pk: attempts[pk]}, broker, reason, now)
                if moved:
                    executions_replayed.send(sender=Replay, executions=moved, replay=replay)
                    return moved[0]
                transaction.set_rollback(True)  # this execution cannot be republished; try the next execution
            if overlap_now(schedule):
                held.add(schedule)
    return None


def stop(pk: int, reason: str, now: datetime | None = None, *states: str) -> bool:
    """Stop a replay, so that no more of its executions are sent.

    Args:
        states: the states from which the replay may be stopped; without arguments, the states in `OPEN`.

    Returns:
        False if the replay was in none of these states.
    """
    stopped = Replay.objects.filter(pk=pk, state__in=states or OPEN).update(
        state=Replay.State.STOPPED.value, reason=reason, finished_at=now or clock.now()
    )
    if stopped:
        log.warning("Replay %s is stopped: %s", pk, reason)
    return bool(stopped)
