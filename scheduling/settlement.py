"""Settle: an attempt's outcome becomes the execution's next state, once, and is announced."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction

from scheduling.core.fingerprint import fingerprint
from scheduling.core.lifecycle import State
from scheduling.core.outcome import Cancelled, Crashed, Failed, Interrupted, Outcome, Succeeded, TimedOut
from scheduling.core.retry import GiveUp, Retry, RetryPolicy, decide
from scheduling.core.text import clean
from scheduling.ledger import FAR, Ended, Entry, Next, settle
from scheduling.logs import get_logger
from scheduling.models import SchedulerExecution
from scheduling.signals import execution_failed

log = get_logger(__name__)

CLAIM_GRACE = timedelta(seconds=10)
"""How long a publish may take before a sweep publishes again."""

Delay = Callable[[int, bool], int]
"""The delay in milliseconds that the transport keeps for a wanted one; True if that was drawn at random."""

MESSAGE_LIMIT = 4_000
TRACEBACK_LIMIT = 64_000


@dataclass(frozen=True)
class Settled:
    """What settling an attempt led to; `state` None: this process was fenced off."""

    ended: Ended
    outcome: Outcome
    state: State | None
    retry: Retry | None = None
    retry_at: datetime | None = None
    retries: int = 0
    max_retries: int = 0
    reason: str = ""

    @property
    def error(self) -> str:
        """Class and message in one line, empty for a success."""
        if isinstance(self.outcome, Succeeded):
            return ""
        return f"{self.outcome.error_class}: {self.outcome.message}"


def settle_attempt(
    ended: Ended,
    outcome: Outcome,
    policy: RetryPolicy,
    now: datetime,
    *,
    embedded: bool,
    lease_before: datetime = FAR,
    delay: Delay = lambda wanted, _drawn: wanted,
) -> Settled:
    """Write the outcome; the caller answers the broker afterwards, and then calls `announce`.

    The row is written before the broker is answered: a crash between the two repeats, never loses.

    Args:
        delay: `Broker.delay`, so that the row and the log say when the retry will come, not when it was wanted.
    """
    if isinstance(outcome, Succeeded):
        won = settle(ended, Next(State.SUCCEEDED, keeps_published=True), Entry(outcome.name), now, lease_before)
        return Settled(ended, outcome, State.SUCCEEDED if won else None)
    with transaction.atomic():
        row = (
            SchedulerExecution.objects.select_for_update()
            .filter(pk=ended.execution_id, attempt=ended.attempt)
            .values_list("retry_base", "cancel_requested_by")
            .first()
        )
        if row is None:
            return Settled(ended, outcome, None)
        retry_base, cancel_by = row
        if cancel_by and not isinstance(outcome, Cancelled | Interrupted):
            # Cancel wins over the retry that would follow.
            following, retry, retries = (
                Next(State.CANCELLED, reason=f"Cancelled by {cancel_by}.", keeps_published=True),
                None,
                0,
            )
        else:
            retries = max(0, ended.attempt - retry_base - 1)
            following, retry = _following(outcome, policy, retries, now, embedded, delay)
        message = clean(outcome.message, MESSAGE_LIMIT)
        traceback = clean(outcome.traceback, TRACEBACK_LIMIT)
        error_class = clean(outcome.error_class, 200)
        if following.state is not State.QUEUED and following.state is not State.CLAIMED:
            group = fingerprint(error_class, message, traceback)
            following = Next(
                **{**vars(following), "error_class": error_class, "error_message": message, "fingerprint": group}
            )
        exit_code = signal = None
        if isinstance(outcome, TimedOut | Crashed | Cancelled | Interrupted):
            exit_code, signal = outcome.exit_code, outcome.signal
        retry_at = following.wake_at if retry else None
        entry = Entry(outcome.name, exit_code, signal, error_class, message, traceback, retry_at)
        won = settle(ended, following, entry, now, lease_before)
    if not won:
        return Settled(ended, outcome, None)
    return Settled(ended, outcome, following.state, retry, retry_at, retries, policy.max_retries, following.reason)


def _following(
    outcome: Failed | TimedOut | Crashed | Cancelled | Interrupted,
    policy: RetryPolicy,
    retries: int,
    now: datetime,
    embedded: bool,
    delay: Delay,
) -> tuple[Next, Retry | None]:
    if isinstance(outcome, Cancelled):
        return Next(State.CANCELLED, reason=outcome.message, keeps_published=True), None
    if isinstance(outcome, Interrupted):
        if embedded:
            return Next(State.QUEUED, wake_at=now, uncounted=1, published_at=now), None
        return Next(State.CLAIMED, wake_at=now, uncounted=1), None
    match decide(policy, retries, outcome, random.random):
        case Retry() as wanted:
            named = isinstance(outcome, Failed) and outcome.retry_after_ms is not None
            retry = replace(wanted, delay_ms=delay(wanted.delay_ms, policy.jitter and not named))
            due = now + timedelta(milliseconds=retry.delay_ms)
            reason = f"Retry {retry.number} of {policy.max_retries}."
            return Next(State.RETRYING, wake_at=due, reason=reason, published_at=now if embedded else None), retry
        case GiveUp(reason):
            return Next(State.FAILED, reason=reason, keeps_published=embedded), None


def announce(settled: Settled, *, type_: str, target_id: int | None, name: str, scheduler_id: int | None) -> None:
    """Log the outcome and, for a permanent failure, send the signal; never raises."""
    ended, outcome = settled.ended, settled.outcome
    context = {"type": type_, "id": target_id, "scheduler_id": scheduler_id, "execution": ended.execution_id}
    context["attempt"] = ended.attempt
    if settled.state is None:
        log.warning("Result dropped (%s): another process owns this execution by now", outcome.name, extra=context)
    elif settled.state is State.SUCCEEDED:
        log.success("Task completed", extra=context)
    elif settled.state is State.RETRYING and settled.retry is not None:
        retry, error = settled.retry, settled.error.rstrip(".")
        log.warning(
            "%s. Scheduling retry %s/%s in %sms",
            error,
            retry.number,
            settled.max_retries,
            retry.delay_ms,
            extra=context,
        )
    elif settled.state is State.CANCELLED:
        log.warning("Task cancelled", extra=context)
    elif settled.state in (State.QUEUED, State.CLAIMED):
        log.warning("Task given back: the consumer is shutting down", extra=context)
    else:
        context["retry_count"] = settled.retries
        log.error("PERMANENTLY FAILED TASK: %s (%s)", settled.error.rstrip("."), settled.reason, extra=context)
        results = execution_failed.send_robust(
            sender=SchedulerExecution,
            execution_id=ended.execution_id,
            scheduler_id=scheduler_id,
            type=type_,
            target_id=target_id,
            target_name=name,
            attempts=ended.attempt,
            error_class=getattr(outcome, "error_class", ""),
            error_message=getattr(outcome, "message", ""),
            reason=settled.reason,
        )
        for receiver, answer in results:
            if isinstance(answer, Exception):
                log.error("A receiver of execution_failed raised: %r: %r", receiver, answer, extra=context)
