"""Pauses schedules by their own rules: after a number of runs, and after failures in a row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import nullcontext
from datetime import datetime
from typing import Any

from django.db import DatabaseError, connection, transaction
from django.db.models import Case, DateTimeField, F, Max, Q, Value, When
from django.db.models.functions import Coalesce
from django.db.models.lookups import LessThanOrEqual

from scheduling.core.lifecycle import State
from scheduling.core.run_bounds import (
    PausedFor,
    failed_in_a_row,
    fails_in_a_row,
    is_bound,
    ran_often,
    runs_before,
)
from scheduling.core.text import clean
from scheduling.execution.revisions import note_found
from scheduling.logs import get_logger
from scheduling.models import Attempt, Scheduler, SchedulerExecution
from scheduling.models.author import Author, AuthorKind
from scheduling.models.decided import not_before
from scheduling.models.set_each import set_each
from scheduling.processes.conflicts import again_after_conflicts
from scheduling.processes.database import is_away, locking

log = get_logger(__name__)

REASON_CHARS = 500

RESULTS = (State.SUCCEEDED, State.FAILED, State.DISCARDED)
"""The states that say whether a run has failed for good. A failure that was discarded has failed."""


def count_runs(rows: Iterable[Any], inserted: Iterable[SchedulerExecution], now: datetime) -> None:
    """Count the occurrences that were claimed to run, and pause the schedules that have run as often as they may.

    The rows of the schedules are locked, so that each occurrence is counted once. Call this function in the transaction
    of the claim, after `next_run_at` was set.

    Args:
        rows: the due schedules, with `id`, `date_time`, `max_runs`, `runs_counted` and `counted_for`.
        inserted: their new executions.
    """
    bound = {row.id: row for row in rows if row.date_time is None and is_bound(row.max_runs)}
    if not bound:
        return
    new: dict[int, int] = {}
    for execution in inserted:
        pk = execution.scheduler_id
        if pk is not None and pk in bound and execution.state != State.SKIPPED.value:
            new[pk] = new.get(pk, 0) + 1
    counted: dict[int, tuple[int, int]] = {}
    for pk, count in new.items():
        most = bound[pk].max_runs
        counted[pk] = runs_before(bound[pk].runs_counted, bound[pk].counted_for, most) + count, most
    set_each(Scheduler, ("runs_counted", "counted_for"), counted)
    for pk, (runs, most) in counted.items():
        if runs >= most:
            _pause(pk, PausedFor.RUNS, ran_often(most), now)


def runs_left(row: Any) -> int | None:
    """How many occurrences of a due schedule may still be claimed to run; None if any number."""
    if row.date_time is not None or not is_bound(row.max_runs):
        return None
    return int(row.max_runs) - runs_before(row.runs_counted, row.counted_for, row.max_runs)


def pause_failing(schedules: Collection[int], now: datetime) -> int:
    """Pause those of the schedules whose last runs have failed as often as their rule says. Returns how many.

    Call this function after a run of theirs has failed for good. It may be called again at any time.
    """
    if not schedules:
        return 0
    rows = Scheduler.objects.filter(pk__in=schedules, status=True, pause_after_failures__isnull=False)
    keys = list(rows.filter(stay_alive=False).values_list("pk", flat=True))
    return sum(again_after_conflicts(lambda pk=pk: _pause_failing(pk, now)) for pk in keys)  # type: ignore[misc]


def pause_failing_after(schedules: Collection[int], now: datetime) -> None:
    """Do the same as `pause_failing`. What fails is done when the attempts are tallied."""
    try:
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            pause_failing(schedules, now)
    except DatabaseError as error:
        log.warning("Schedules whose runs fail are paused later, because the database failed: %s", error)


def _pause_failing(pk: int, now: datetime) -> bool:
    with transaction.atomic():
        # If plain SQL has just resumed it, a sweep first records what the former pause has left out. Then the count of
        # failures begins anew.
        rows = Scheduler.objects.filter(pk=pk, status=True, paused_at__isnull=True)
        row = locking(rows).values_list("pause_after_failures", "failures_since").first()
        if row is None:
            return False
        most, since = row
        ends = _ends(pk, most) if fails_in_a_row([True] * 100, most) else []
        if not fails_in_a_row([state != State.SUCCEEDED.value for _run, state in ends], most):
            return False
        if since is not None and min(_ended_at([run for run, _state in ends])) <= since:
            return False
        _pause(pk, PausedFor.FAILURES, failed_in_a_row(most, ends[0][0]), _pause_begins(pk, now))
        return True


def _pause_begins(pk: int, now: datetime) -> datetime:
    """When a pause of the schedule begins. What an edit has recorded shortly after `now` is not left out once more."""
    try:
        with transaction.atomic():
            return not_before(Scheduler.objects.get(pk=pk), now)
    except Exception as error:
        if is_away(error):
            raise
        return now  # plain SQL has written what Python cannot read


def _ends(pk: int, most: int) -> Sequence[tuple[int, str]]:
    """The last runs of a schedule that have ended, the newest first, with their states."""
    rows = SchedulerExecution.objects.in_state(*RESULTS).filter(scheduler=pk).order_by("-pk")
    return list(rows.values_list("pk", "state")[:most])


def _ended_at(runs: Sequence[int]) -> list[datetime]:
    """When the last attempts of the runs ended. An operator may have discarded a failure long after its end.

    Some runs have failed without an attempt, for example because their predecessor was late. Of a run whose end is not
    known, because plain SQL has ended it, or because it was discarded since, it is the time of its claim.
    """
    ended = Attempt.objects.filter(execution__in=runs).order_by().values_list("execution").annotate(Max("finished_at"))
    found = {run: at for run, at in ended if at is not None}
    rows = SchedulerExecution.objects.filter(pk__in=[run for run in runs if run not in found])
    others = rows.values_list("state", "finished_at", "executed_at")
    return [
        *found.values(),
        *(claimed if end is None or state == State.DISCARDED.value else end for state, end, claimed in others),
    ]


def _pause(pk: int, rule: PausedFor, reason: str, now: datetime) -> None:
    """Pause a schedule. Its row is locked. An occurrence that is due stays, and is recorded as skipped.

    So does one that is due and waits for its start. Nothing else of the plan stays: the pause counts what follows.
    """
    # MySQL sets one column after the other, so `next_run_at` stands before the `next_nominal_at` that it is set by.
    first = Coalesce("next_nominal_at", F("next_run_at"))
    still_due = Case(
        When(Q(LessThanOrEqual(first, now)), then=first), default=Value(None), output_field=DateTimeField()
    )
    Scheduler.objects.filter(pk=pk).update(
        status=False, planned_status=False, paused_at=now, paused_by="", paused_for=rule.value, pause_recorded_to=None,
        pause_reason=clean(reason, REASON_CHARS), next_run_at=still_due, next_nominal_at=None,
    )  # fmt: skip
    note_found(pk, now, author=Author(AuthorKind.SYSTEM, "the rule of the schedule", reason))
    log.warning("A schedule is paused by its rule: %s", reason, extra={"scheduler_id": pk})
