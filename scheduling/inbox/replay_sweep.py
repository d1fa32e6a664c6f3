"""The producers' sweep of replays: judge the canary, then send the other executions in small batches."""

from __future__ import annotations

import random
import time
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F

from scheduling.broker import Broker
from scheduling.core import inbox_sentences as say
from scheduling.core.lifecycle import State
from scheduling.core.outcome import FAILING
from scheduling.core.replay import Release, Stop, due, verdict
from scheduling.core.text import clean
from scheduling.inbox import actions as inbox_actions
from scheduling.inbox.replay import stop
from scheduling.logs import get_logger
from scheduling.models import Attempt, Replay, SchedulerExecution
from scheduling.models.prepared import any_of
from scheduling.models.replay import OPEN
from scheduling.processes.database import is_away
from scheduling.signals import executions_replayed

log = get_logger(__name__)

LARGEST_KEY = 2**63 - 1

ABANDONED = timedelta(minutes=10)
"""How long a replay may have the state "collecting". In this state, the operator's request stores the selected
executions. After this time, a sweep stops the replay: the request must have died before it sent an execution."""

ERROR_LIMIT = 500


ANY_OPEN = any_of(lambda _now: Replay.objects.filter(state__in=OPEN).order_by("pk"))
"""Whether any replay is under way. Each sweep asks for it."""


class SelectionUnreadable(Exception):
    """The stored selection of a replay is damaged."""


class SweepLimits:
    """How much one round of the sweep may do."""

    executions_per_step = 100
    """The maximum number of executions that one transaction sends."""
    replays_per_round = 50
    """The maximum number of released replays in one round. The same limit applies to replays that are not released
    yet. A replay is released when its canary has succeeded."""
    seconds = 0.5
    """The maximum time of one round. Due schedules wait during this time, so the limit is short."""


def sweep(broker: Broker, now: datetime) -> int:
    """Make one round over the open replays, within `SweepLimits`. Returns how many executions were sent."""
    if not ANY_OPEN.rows(now):
        return 0
    released = _released(now)
    count, until = 0, time.monotonic() + SweepLimits.seconds
    # The replays take turns, so that a long replay does not delay the other replays.
    while released:
        for pk in list(released):
            sent = _step(pk, broker, now)
            if sent is None:
                released.remove(pk)
            count += sent or 0
            if time.monotonic() > until:
                return count
    return count


def _under_way() -> list[int]:
    """The primary keys of this round's replays: released ones (earliest due first), then those not released yet.

    If too many replays are not released yet, some of them are chosen at random. In a fixed order, the same replays
    would fill every round if their canaries never ran.
    """
    rows = Replay.objects.order_by("next_at", "pk").values_list("pk", flat=True)
    limit = SweepLimits.replays_per_round
    released = list(rows.filter(state=Replay.State.RELEASED.value)[:limit])
    waiting = list(rows.filter(state__in=(Replay.State.COLLECTING.value, Replay.State.WAITING.value)))
    return released + sorted(random.sample(waiting, limit) if len(waiting) > limit else waiting)


def _released(now: datetime) -> list[int]:
    """Stop abandoned replays and judge waiting replays. Returns the primary keys of the released replays."""
    return [pk for pk in _under_way() if _is_released(pk, now)]


def _is_released(pk: int, now: datetime) -> bool:
    """Stop or judge a replay if it is not released yet. Returns whether it is released now."""
    try:
        with transaction.atomic():
            replay = Replay.objects.filter(pk=pk).first()
            if replay is None:
                return False
            if replay.state == Replay.State.COLLECTING.value and now - replay.created_at > ABANDONED:
                stop(replay.pk, say.REQUEST_ENDED.format(), now, replay.state)
            elif replay.state == Replay.State.WAITING.value:
                judge(replay, now)
            return replay.state == Replay.State.RELEASED.value
    except Exception as error:
        if is_away(error):
            raise
        _stop_unreadable(pk, error, now)
        return False


def _stop_unreadable(pk: int, error: Exception, now: datetime) -> None:
    """Stop a replay whose row plain SQL has damaged. If the database refuses this, too, the other replays continue."""
    try:
        with transaction.atomic():
            stop(pk, clean(say.UNREADABLE.format(error=f"{type(error).__name__}: {error}"), ERROR_LIMIT), now)
    except Exception as refused:
        if is_away(refused):
            raise
        log.error("Replay %s cannot be read and cannot be stopped: %s", pk, refused)


def judge(replay: Replay, now: datetime) -> None:
    """Release or stop a replay, or let it wait, depending on its canary's state."""
    state = SchedulerExecution.objects.filter(pk=replay.canary or 0).values_list("state", flat=True).first()
    match verdict(state, _error(replay, state)):
        case Stop(reason):
            stop(replay.pk, reason, now, Replay.State.WAITING.value)
        case Release():
            if Replay.objects.filter(pk=replay.pk, state=Replay.State.WAITING.value).update(
                state=Replay.State.RELEASED.value, next_at=now
            ):
                log.info("Replay %s: its canary succeeded, the others follow", replay.pk)
                replay.state = Replay.State.RELEASED.value


def _error(replay: Replay, state: str | None) -> str | None:
    """The error of the canary's first permanent failure since the replay sent the canary; None if there is none."""
    tried = Attempt.objects.filter(execution=replay.canary, number__gt=replay.canary_attempt)
    final = tried.filter(retry_at=None, outcome__in=FAILING).order_by("number")
    attempt = final.values_list("error_class", "error_message").first()
    if attempt is None and state == State.FAILED.value:  # the broker gave up delivering, so no attempt ran
        rows = SchedulerExecution.objects.filter(pk=replay.canary or 0)
        attempt = rows.values_list("error_class", "error_message").first()
    return None if attempt is None else f"{attempt[0]}: {attempt[1]}"[:ERROR_LIMIT]


def _step(pk: int, broker: Broker, now: datetime) -> int | None:
    """Send one batch of a replay's due executions. Returns how many were sent; None if no more can be sent now."""
    try:
        with transaction.atomic():
            done = _advance(pk, broker, now)
    except SelectionUnreadable as error:
        # Plain SQL has damaged the stored selection of this replay. The other replays must continue.
        stop(pk, say.SELECTION_UNREADABLE.format(error=error)[:ERROR_LIMIT], now)
        return None
    except Exception as error:
        if is_away(error):
            raise
        log.exception("Replay %s: a step failed and is tried again in the next round", pk)
        return None
    if done is None:
        return None
    inbox_actions.publish_requeued(done, broker)
    return len(done)


def _advance(pk: int, broker: Broker, now: datetime) -> list[SchedulerExecution] | None:
    rows = Replay.objects.filter(pk=pk, state=Replay.State.RELEASED.value)
    try:
        replay = rows.select_for_update(skip_locked=True).first()
    except (TypeError, ValueError, OverflowError) as error:
        raise SelectionUnreadable(repr(error)) from error
    if replay is None or replay.next_at is None:
        return None
    limit = SweepLimits.executions_per_step
    try:
        count, next_at = due(replay.next_at, replay.step, replay.total - replay.position, now, limit)
        items = _items(replay, count)
    except (TypeError, ValueError, LookupError, OverflowError) as error:
        raise SelectionUnreadable(repr(error)) from error
    position = replay.position + len(items)
    columns: dict[str, Any] = {"position": position, "next_at": next_at}
    if position >= replay.total:
        columns |= {"state": Replay.State.DONE.value, "finished_at": now}
    elif not items:
        return None
    # Some databases have no row locks. So a compare-and-set changes the position first. Only the process that changed
    # the position sends these executions.
    if not rows.filter(position=replay.position).update(**columns):
        return None
    attempts = {pk: attempt for pk, attempt in items if pk != replay.canary}
    reason = say.REPUBLISHED_REPLAY.format(by=replay.requested_by, replay=replay.pk, canary=replay.canary)
    moved = inbox_actions.requeue_in_transaction(attempts, broker, reason, now)
    Replay.objects.filter(pk=pk).update(sent=F("sent") + len(moved), skipped=F("skipped") + len(attempts) - len(moved))
    if moved:
        executions_replayed.send(sender=Replay, executions=moved, replay=replay)
    return moved


def _items(replay: Replay, count: int) -> list[tuple[int, int]]:
    """The next pairs of the selection: at most `count`, and only from the current chunk.

    Raises:
        ValueError: the stored selection is damaged.
    """
    if not count:
        return []
    chunk = replay.chunks.filter(first__lte=replay.position).order_by("-first").first()
    if chunk is None:
        raise ValueError("a part is missing")
    begin = replay.position - chunk.first
    found = [(int(pk), int(attempt)) for pk, attempt in chunk.items[begin : begin + count]]
    if not found:
        raise ValueError("a part is missing")
    if not all(0 < pk <= LARGEST_KEY and 0 <= attempt <= LARGEST_KEY for pk, attempt in found):
        raise ValueError("no execution has such a number")
    return found
