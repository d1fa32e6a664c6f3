"""Settles an attempt: records the outcome and the execution's next state."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Subquery

from scheduling.core import run_sentences as say
from scheduling.core.fingerprint import fingerprint
from scheduling.core.lifecycle import State
from scheduling.core.outcome import (
    Cancelled,
    Deferred,
    Failed,
    FailedProbe,
    Interrupted,
    Outcome,
    Skipped,
    Snoozed,
    Succeeded,
)
from scheduling.core.retry import GiveUp, Retry, RetryPolicy, decide
from scheduling.core.service import KEPT_ATTEMPTS, STEADY, restart
from scheduling.core.snooze import allowed
from scheduling.core.text import clean
from scheduling.execution.tallying import tallied_up_to
from scheduling.execution.transitions import DISTANT_FUTURE, AttemptValues, Ended, Entry, Next, settle
from scheduling.models import Attempt, Output, SchedulerExecution

Delay = Callable[[int, bool], int]
"""A function that takes the wanted delay in milliseconds, and whether the delay has jitter. It returns the delay that
the transport offers."""

MESSAGE_LIMIT = 4_000
TRACEBACK_LIMIT = 64_000


@dataclass(frozen=True)
class Settled:
    """The result of settling an attempt. `state` is None if this process was fenced off or the row is gone.

    `at` is when the attempt ended.
    """

    ended: Ended
    outcome: Outcome
    at: datetime
    state: State | None
    retry: Retry | None = None
    retry_at: datetime | None = None
    retries: int = 0
    max_retries: int | None = 0
    """None for a service, which is started again without a limit."""
    reason: str = ""

    @property
    def error(self) -> str:
        """The error's class and message; empty for a success."""
        if isinstance(self.outcome, Succeeded):
            return "" if self.retry is None else "The handler of the service has returned."
        return f"{self.outcome.error_class}: {self.outcome.message}"


def settle_attempt(
    ended: Ended,
    outcome: Outcome,
    policy: RetryPolicy,
    now: datetime,
    *,
    embedded: bool,
    lease_before: datetime = DISTANT_FUTURE,
    delay: Delay = lambda wanted, _drawn: wanted,
    attempts: list[AttemptValues] | None = None,
    service: bool = False,
) -> Settled:
    """Write the outcome to the rows. The caller then answers the broker and calls `announce`.

    The row is written before the broker gets its answer. If the process crashes between these steps, the broker
    delivers the message again, and no outcome is lost.

    Args:
        lease_before: settle only if the lease ends at or before this instant (see `transitions.settle`).
        delay: `Broker.delay`, which returns the nearest delay that the broker offers. The row and the log show this
            delay.
        attempts: collects the attempt's row instead of writing it (see `transitions.settle`).
        service: whether the execution is started again however it has ended (`core.service`).
    """
    if isinstance(outcome, Succeeded) and not service:
        following = Next(State.SUCCEEDED, keeps_published=True)
        entry = Entry(outcome.name, outcome.exit_code, result=outcome.result)
        won = settle(ended, following, entry, now, lease_before, attempts)
        return Settled(ended, outcome, now, State.SUCCEEDED if won else None)
    with transaction.atomic():
        # A sweep leaves a locked row for its next turn: its owner may be paused while it holds the lock.
        locked = SchedulerExecution.objects.select_for_update(skip_locked=lease_before < DISTANT_FUTURE)
        rows = locked.filter(pk=ended.execution_id, attempt=ended.attempt)
        row = rows.values_list("retry_base", "cancel_requested_by", "snoozes").first()
        if row is None:
            return Settled(ended, outcome, now, None)
        retry_base, cancel_by, snoozes = row
        outcome = outcome if service else allowed(outcome, snoozes)
        if cancel_by and not isinstance(outcome, Cancelled):
            # An operator's cancel takes precedence over a retry, and over a consumer that gives its runs back.
            following = Next(State.CANCELLED, reason=say.CANCELLED_BY.format(by=cancel_by), keeps_published=True)
            retry, retries = None, 0
        else:
            retries = max(0, ended.attempt - retry_base - 1)
            if service and not isinstance(outcome, Cancelled | Interrupted | Deferred | Snoozed):
                following, retry = _restart(policy, retries, _lasted(ended, now), now, embedded, delay)
            else:
                following, retry = _following(outcome, policy, retries, now, embedded, delay)
        message = clean(getattr(outcome, "message", ""), MESSAGE_LIMIT)
        traceback = clean(getattr(outcome, "traceback", ""), TRACEBACK_LIMIT)
        error_class = clean(getattr(outcome, "error_class", ""), 200)
        if error_class and following.state is not State.QUEUED and following.state is not State.CLAIMED:
            group = fingerprint(error_class, message, traceback)
            following = replace(following, error_class=error_class, error_message=message, fingerprint=group)
        retry_at = following.wake_at if retry else None
        entry = Entry(
            outcome.name, outcome.exit_code, outcome.signal, error_class, message, traceback, retry_at, outcome.result
        )
        won = settle(ended, following, entry, now, lease_before, attempts)
        if won and service:
            _drop_old_attempts(ended)
    if not won:
        return Settled(ended, outcome, now, None)
    most = None if service else policy.max_retries
    return Settled(ended, outcome, now, following.state, retry, retry_at, retries, most, following.reason)


def _lasted(ended: Ended, now: datetime) -> timedelta:
    """How long a service ran without an end. Attempts that are not counted are no ends."""
    lasted = now - ended.started_at
    if lasted < STEADY:
        earlier = Attempt.objects.filter(execution=ended.execution_id, number__lt=ended.attempt).order_by("-number")
        for outcome, started, finished in earlier.values_list("outcome", "started_at", "finished_at"):
            if outcome not in Attempt.UNCOUNTED:
                break
            lasted += finished - started
    return lasted


def _restart(
    policy: RetryPolicy, restarts: int, lasted: timedelta, now: datetime, embedded: bool, delay: Delay
) -> tuple[Next, Retry]:
    wanted = restart(policy, restarts, lasted, random.random)
    again = replace(wanted, delay_ms=delay(wanted.delay_ms, policy.jitter))
    following = Next(
        State.RETRYING,
        wake_at=now + timedelta(milliseconds=again.delay_ms),
        reason=say.RESTART_FOLLOWS.format(number=again.number),
        uncounted=restarts + 1 - again.number,
        published_at=now if embedded else None,
    )
    return following, again


def _drop_old_attempts(ended: Ended) -> None:
    """Remove the attempts of a service except the newest `KEPT_ATTEMPTS`, with their output.

    An attempt that is not tallied yet stays until a later end of the service.
    """
    last = ended.attempt - KEPT_ATTEMPTS
    if last > 0:
        for rows in (
            Output.objects.filter(execution=ended.execution_id, attempt__lte=last),
            Attempt.objects.filter(execution=ended.execution_id, number__lte=last, pk__lte=Subquery(tallied_up_to())),
        ):
            rows._raw_delete(rows.db)


def _following(
    outcome: Outcome,
    policy: RetryPolicy,
    retries: int,
    now: datetime,
    embedded: bool,
    delay: Delay,
) -> tuple[Next, Retry | None]:
    if isinstance(outcome, Cancelled | Skipped):
        state = State.CANCELLED if isinstance(outcome, Cancelled) else State.SKIPPED
        return Next(state, reason=outcome.message, keeps_published=True), None
    if isinstance(outcome, Interrupted):
        if embedded:
            return Next(State.QUEUED, wake_at=now, uncounted=1, published_at=now), None
        return Next(State.CLAIMED, wake_at=now, uncounted=1), None
    if isinstance(outcome, Deferred | FailedProbe):
        # `published_at` is set since the start. It says that the message has arrived: no late confirm may move the row.
        return Next(
            State.QUEUED if embedded else State.CLAIMED,
            wake_at=now + outcome.wait,
            reason=outcome.reason,
            deferred_at=outcome.asked_at,
            uncounted=1,
            keeps_published=True,
        ), None
    if isinstance(outcome, Snoozed):
        return Next(
            State.QUEUED if embedded else State.CLAIMED,
            wake_at=now + outcome.wait,
            reason=outcome.reason,
            uncounted=1,
            snoozes=1,
            keeps_published=True,
        ), None
    match decide(policy, retries, outcome, random.random):
        case Retry() as wanted:
            named = isinstance(outcome, Failed) and outcome.retry_after_ms is not None
            retry = replace(wanted, delay_ms=delay(wanted.delay_ms, policy.jitter and not named))
            due = now + timedelta(milliseconds=retry.delay_ms)
            reason = say.RETRY_FOLLOWS.format(number=retry.number, most=policy.max_retries)
            return Next(State.RETRYING, wake_at=due, reason=reason, published_at=now if embedded else None), retry
        case GiveUp(reason):
            return Next(State.FAILED, reason=reason, keeps_published=embedded), None
