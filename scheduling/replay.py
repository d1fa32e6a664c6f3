"""Replay failed executions, one of them first: collect, send the canary, and after its success the others.

The operator's request collects the selection and sends the canary. All that follows is a sweep in the
producers: each step is one transaction that begins with a compare-and-set of the replay's own row, so
a step is done once, by whoever comes first, or not at all.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils import timezone as clock

from scheduling import failed
from scheduling.broker import Broker
from scheduling.core.lifecycle import State
from scheduling.core.replay import Release, Stop, due, verdict
from scheduling.logs import get_logger
from scheduling.models import Attempt, Replay, ReplayChunk, SchedulerExecution
from scheduling.models.replay import OPEN
from scheduling.signals import executions_replayed

log = get_logger(__name__)

BATCH = 100
"""Executions of one transaction."""

SWEEP_SECONDS = 0.5
"""How long one round may work on all replays: schedules that fall due wait for it."""

MOST = 50
"""Replays of each kind that one round looks at."""

LARGEST_KEY = 2**63 - 1

ABANDONED = timedelta(minutes=10)
"""So old a replay whose selection is not collected has lost its request: nothing of it was sent."""

FAILURES = (Attempt.Outcome.FAILED, Attempt.Outcome.TIMED_OUT, Attempt.Outcome.CRASHED)
ERROR_LIMIT = 500

Chosen = Iterable[list[tuple[int, int]]]
"""Chunks of pairs: an execution's id, and its last attempt as it was chosen."""


def start(
    key: uuid.UUID, chosen: Chosen, broker: Broker, user: Any, selection: str, minutes: int = 0,
    now: datetime | None = None,
) -> Replay | None:  # fmt: skip
    """Collect a selection and send its canary, the oldest of it that can run.

    Args:
        key: the asking page's own; None is returned when it has been used.
        selection: what was chosen, in words.
        minutes: over how many the others are spread, from the canary's success on.

    Returns:
        The replay. It is stopped already if nothing of the selection was left in the inbox.
    """
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
    # Each part is committed by itself: a large selection keeps no lock, and is never in memory as a whole.
    for pairs in chosen:
        ReplayChunk.objects.create(replay=replay, first=replay.total, items=[list(pair) for pair in pairs])
        replay.total += len(pairs)
    canary = _send_canary(replay, broker, now)
    replay.refresh_from_db()
    if canary is not None:
        failed.send([canary], broker)
        failed.take_out_parked(broker, [canary])
        log.info("Replay %s: %s goes first, of %s", replay.pk, canary.pk, replay.total, extra={"by": str(user)})
    else:
        stop(replay.pk, "Nothing of it could be run: it had left the inbox, or cannot be read.", now)
        replay.refresh_from_db()
    return replay


def _send_canary(replay: Replay, broker: Broker, now: datetime) -> SchedulerExecution | None:
    reason = f"Republished by {replay.requested_by} as the canary of replay {replay.pk}."
    for chunk in replay.chunks.order_by("first").iterator(chunk_size=1):
        attempts = dict(chunk.items)
        rows = SchedulerExecution.objects.filter(pk__in=attempts, state=State.FAILED.value).exclude(type="")
        for pk in rows.order_by("pk").values_list("pk", flat=True):
            with transaction.atomic():
                # The replay first, as in every step: whoever stopped it meanwhile has the last word.
                if not Replay.objects.filter(pk=replay.pk, state=Replay.State.COLLECTING.value).update(
                    state=Replay.State.WAITING.value, total=replay.total, canary=pk, canary_attempt=attempts[pk],
                    sent=1,
                ):  # fmt: skip
                    return None
                moved = failed.move({pk: attempts[pk]}, broker, reason, now)
                if moved:
                    executions_replayed.send(sender=Replay, executions=moved, replay=replay)
                    return moved[0]
                transaction.set_rollback(True)  # somebody was faster with this one; the next may do
    return None


def stop(pk: int, reason: str, now: datetime | None = None, *states: str) -> bool:
    """Send no more of it; what was sent goes on. Whether it was still open (in one of `states`)."""
    stopped = Replay.objects.filter(pk=pk, state__in=states or OPEN).update(
        state=Replay.State.STOPPED.value, reason=reason, finished_at=now or clock.now()
    )
    if stopped:
        log.warning("Replay %s is stopped: %s", pk, reason)
    return bool(stopped)


def sweep(broker: Broker, now: datetime) -> int:
    """One round over the replays that are under way, for a bounded time; how many executions were sent."""
    released = []
    for replay in _under_way():
        if replay.state == Replay.State.COLLECTING.value and now - replay.created_at > ABANDONED:
            stop(replay.pk, "Its request ended before all was collected. Nothing was sent.", now, replay.state)
        elif replay.state == Replay.State.WAITING.value:
            judge(replay, now)
        if replay.state == Replay.State.RELEASED.value:
            released.append(replay.pk)
    count, until = 0, time.monotonic() + SWEEP_SECONDS
    # In turns, so that a long one does not keep the others waiting.
    while released:
        for pk in list(released):
            sent = _step(pk, broker, now)
            if sent is None:
                released.remove(pk)
            count += sent or 0
            if time.monotonic() > until:
                return count
    return count


def _under_way() -> list[Replay]:
    """Those of this round: what is released, by when its next is due; and what waits for its canary, any of it, so
    that canaries for which no consumer comes keep no other replay waiting."""
    rows = Replay.objects.order_by("next_at", "pk")
    released = list(rows.filter(state=Replay.State.RELEASED.value)[:MOST])
    waiting = rows.filter(state__in=(Replay.State.COLLECTING.value, Replay.State.WAITING.value))
    keys = list(waiting.values_list("pk", flat=True))
    if len(keys) > MOST:
        keys = random.sample(keys, MOST)
    return released + (list(waiting.filter(pk__in=keys).order_by("pk")) if keys else [])


def judge(replay: Replay, now: datetime) -> None:
    """Release or stop a replay, by how its canary stands."""
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
    """Of the canary's first attempt since it was sent that no retry followed."""
    attempt = (
        Attempt.objects.filter(
            execution=replay.canary, number__gt=replay.canary_attempt, retry_at=None, outcome__in=FAILURES
        )
        .order_by("number")
        .values_list("error_class", "error_message")
        .first()
    )
    if attempt is None and state == State.FAILED.value:  # without an attempt: the broker gave up bringing it
        rows = SchedulerExecution.objects.filter(pk=replay.canary or 0)
        attempt = rows.values_list("error_class", "error_message").first()
    return None if attempt is None else f"{attempt[0]}: {attempt[1]}"[:ERROR_LIMIT]


def _step(pk: int, broker: Broker, now: datetime) -> int | None:
    """Send what is due of one replay, at most a batch; None when there is nothing more to do now."""
    try:
        with transaction.atomic():
            done = _advance(pk, broker, now)
    except (
        TypeError,
        ValueError,
        LookupError,
        OverflowError,
    ) as error:  # a selection that plain SQL has spoilt; the others go on
        stop(pk, f"Its selection cannot be read: {error!r}"[:ERROR_LIMIT], now)
        return None
    if done is None:
        return None
    failed.send(done, broker)
    return len(done)


def _advance(pk: int, broker: Broker, now: datetime) -> list[SchedulerExecution] | None:
    rows = Replay.objects.filter(pk=pk, state=Replay.State.RELEASED.value)
    replay = rows.select_for_update(skip_locked=True).first()
    if replay is None or replay.next_at is None:
        return None
    count, next_at = due(replay.next_at, replay.step, replay.total - replay.position, now, BATCH)
    items = _items(replay, count)
    position = replay.position + len(items)
    columns: dict[str, Any] = {"position": position, "next_at": next_at}
    if position >= replay.total:
        columns |= {"state": Replay.State.DONE.value, "finished_at": now}
    elif not items:
        return None
    # First of all, where a database has no row locks: whoever took this place has taken what follows from it.
    if not rows.filter(position=replay.position).update(**columns):
        return None
    attempts = {pk: attempt for pk, attempt in items if pk != replay.canary}
    reason = f"Republished by {replay.requested_by} in replay {replay.pk}, after its canary {replay.canary} succeeded."
    moved = failed.move(attempts, broker, reason, now)
    Replay.objects.filter(pk=pk).update(sent=F("sent") + len(moved), skipped=F("skipped") + len(attempts) - len(moved))
    if moved:
        executions_replayed.send(sender=Replay, executions=moved, replay=replay)
    return moved


def _items(replay: Replay, count: int) -> list[tuple[int, int]]:
    """At most `count` pairs from the replay's place on, of one chunk."""
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
