"""Lets a person confirm a database that was copied or restored, and decide about what waits in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from scheduling.core import run_sentences, skip_reasons
from scheduling.core.deployment import Cause, Hold, Identity, Standing
from scheduling.core.fingerprint import fingerprint
from scheduling.core.lifecycle import CANCELLED_AT_ONCE, OPEN_STATES, State
from scheduling.execution.skip_due import skip_due
from scheduling.logs import get_logger
from scheduling.models import Process, Scheduler, SchedulerExecution
from scheduling.models.plan import FIRST_INSTANT
from scheduling.processes.deployment_row import confirm_row, row_now
from scheduling.processes.guard import guard
from scheduling.processes.own_identity import own_identity

log = get_logger(__name__)

ROWS_PER_UPDATE = 1_000

ERROR_CLASS = "SetAside"
SET_ASIDE = run_sentences.SET_ASIDE.format()
RUN_WAITING, SET_WAITING_ASIDE = "run", "set-aside"
"""The two answers to the question what happens to what waits."""

REPUBLISH = run_sentences.MAY_HAVE_RUN.format()


@dataclass(frozen=True)
class Outlook:
    """What a person must know before the confirmation.

    Args:
        own: the identity that the confirmation gives to the database.
        known_until: for a restored database, up to when it is known to have been worked with. What fell due until then
            has run, as far as is known.
        beat_at: the newest beat that the database has.
        states: how many executions wait or run, by state.
        due: how many schedules have fallen due and would be caught up.
        due_before: how many of them had fallen due by `known_until`.
        alive: the processes that work with this database now.
    """

    hold: Hold
    own: Identity
    beat_at: datetime | None
    known_until: datetime | None
    states: dict[str, int]
    due: int
    due_before: int
    alive: Sequence[Process]

    @property
    def waiting(self) -> int:
        """How many executions wait or run."""
        return sum(self.states.values())


@dataclass(frozen=True)
class Confirmed:
    """What a confirmation has done.

    Args:
        skipped: how many schedules had occurrences that were skipped.
        set_aside: how many executions went to the failed inbox.
    """

    skipped: int
    set_aside: int

    @property
    def counts(self) -> str:
        """Both numbers as a sentence."""
        return f"Skipped schedules: {self.skipped}. Set aside: {self.set_aside}."

    def recorded(self, hold: Hold) -> str:
        """What the history says of the confirmation."""
        return f"confirm: {hold.said} {self.counts}"


def outlook(now: datetime) -> Outlook | None:
    """Look at a database that is held. None if it is not."""
    hold = guard.look()
    if hold is None:
        return None
    row = row_now()
    until = _known_until(hold, row, now)
    due = Scheduler.objects.filter(next_run_at__gte=FIRST_INSTANT, next_run_at__lte=now, status=True)
    found = SchedulerExecution.objects.in_state(*OPEN_STATES).order_by().values_list("state")
    return Outlook(
        hold, own_identity(), row.beat_at if row is not None else None, until, dict(found.annotate(Count("pk"))),
        due.count(), due.filter(next_run_at__lte=until).count() if until is not None else 0,
        [process for process in Process.objects.alive(now) if not process.held],
    )  # fmt: skip


def confirm(now: datetime, by: str, *, run_waiting: bool) -> Confirmed | None:
    """Confirm that this database is the one to work with from now on. None if it is not held.

    Until the last step the database is held, so a confirmation that is cut off can be repeated.

    Args:
        by: the name of the user who confirms it.
        run_waiting: whether what waits runs, and what fell due is caught up. What is known to have run before a restore
            is skipped in any case. Otherwise what fell due is skipped, and what waits goes to the failed inbox.
    """
    hold = guard.look()
    if hold is None:
        return None
    until = _known_until(hold, row_now(), now)
    skipped = skip_due(until, skip_reasons.RAN_BEFORE_RESTORE, now) if until is not None else 0
    set_aside = 0
    if not run_waiting:
        skipped += skip_due(now, skip_reasons.CONFIRMED, now)
        # Only the row of the deployment was deleted: the consumers still have the runs.
        states = CANCELLED_AT_ONCE if hold.cause is Cause.MISSING else OPEN_STATES
        set_aside = _set_aside(states, now)
    confirm_row(own_identity(), by, now)
    guard.forget()
    log.warning("The database is confirmed; skipped schedules: %s, set aside: %s", skipped, set_aside, extra={"by": by})
    return Confirmed(skipped, set_aside)


def _known_until(hold: Hold, row: Standing | None, now: datetime) -> datetime | None:
    if hold.cause is not Cause.RESTORED:
        return None
    known = row.known_until if row is not None and row.known_until is not None else hold.known_until
    return min(known, now) if known is not None else None


def _set_aside(states: frozenset[State], now: datetime) -> int:
    """Move open executions to the failed inbox. They count as parked, so that no message is published for them."""
    done = 0
    while True:
        rows = SchedulerExecution.objects.in_state(*states).order_by()
        keys = list(rows.values_list("pk", flat=True)[:ROWS_PER_UPDATE])
        if not keys:
            return done
        done += SchedulerExecution.objects.filter(pk__in=keys).move(
            states, State.FAILED, wake_at=None, finished_at=now, published_at=now, error_class=ERROR_CLASS,
            error_message=SET_ASIDE, fingerprint=fingerprint(ERROR_CLASS, SET_ASIDE), reason=REPUBLISH,
        )  # fmt: skip
