"""Blocks occurrences whose schedule waits for a predecessor (`core.after`), and lets them go.

An occurrence that waits is a row in state blocked from its claim on, with its key. No message is published for it.
Each process may look at it at any time: what it may do follows from the present rows alone, and each change is a
compare-and-set. So a process that is killed at any point loses no wait: another one looks again at `wake_at`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Protocol

from django.db import transaction

from scheduling.broker import Broker
from scheduling.core import after_sentences as say
from scheduling.core.after import Late, Start, Wait
from scheduling.core.chunks import chunks
from scheduling.core.fingerprint import fingerprint
from scheduling.core.lifecycle import State
from scheduling.core.run_sentences import CANCELLED_BY
from scheduling.core.text import clean
from scheduling.core.words import in_english
from scheduling.execution.announce import report_row
from scheduling.execution.cancel import DELETED
from scheduling.execution.insert import note_skipped
from scheduling.execution.planning import set_aside
from scheduling.execution.publish import initial_columns, publish_soon
from scheduling.execution.rule_pauses import pause_failing
from scheduling.logs import get_logger
from scheduling.models import Scheduler, SchedulerExecution
from scheduling.models.execution import ExecutionQuerySet
from scheduling.policies import overlap
from scheduling.policies.after import Judge, PredecessorUnusable, Verdict, Waiting
from scheduling.processes.database import each_or_all, is_away, locking
from scheduling.processes.guard import guard
from scheduling.processes.set_aside import fail_row, handle_each, read, read_rows, savepoint

log = get_logger(__name__)

LATE, UNUSABLE = "PredecessorLate", "PredecessorUnusable"
"""The classes of the errors of occurrences that failed without an attempt."""

REASONS = {
    LATE: say.LATE.format(),
    UNUSABLE: say.UNUSABLE.format(),
}
FIRST_REASON = say.WAITS_FOR_ANOTHER.format()
REASON_CHARS = 1_000
MOST_WOKEN = 10_000
ROWS_PER_UPDATE = 500


class HasPredecessor(Protocol):
    """A schedule, or a row with this column."""

    @property
    def after_id(self) -> int | None: ...


def columns_at_claim(row: HasPredecessor, now: datetime, embedded: bool) -> dict[str, Any]:
    """The columns of the execution of an occurrence: it is blocked if its schedule waits for a predecessor.

    Whether it has to wait is decided by `look`, after the commit: so a claim costs no more than without a predecessor.
    """
    if row.after_id is None:
        return initial_columns(now, embedded)
    return {"state": State.BLOCKED.value, "wake_at": now, "waits_for": row.after_id, "reason": FIRST_REASON}


def blocked() -> ExecutionQuerySet:
    """The executions that wait for a predecessor."""
    return ExecutionQuerySet(SchedulerExecution).in_state(State.BLOCKED).filter(waits_for__isnull=False)


def wake(predecessors: Collection[int], now: datetime) -> list[int]:
    """Let each process look at once at the occurrences that wait for these schedules. Returns their ids.

    Call it in the transaction that records the success of a predecessor, and `look` after it.
    """
    keys = list(blocked().filter(waits_for__in=predecessors).order_by("pk").values_list("pk", flat=True)[:MOST_WOKEN])
    for some in chunks(keys, ROWS_PER_UPDATE):
        blocked().filter(pk__in=some).update(wake_at=now)
    return keys


@in_english()
def look(keys: Iterable[int], broker: Broker, now: datetime) -> int:
    """Look at blocked occurrences, and let them start, wait on or end. Returns how many do not wait any longer.

    Raises:
        django.db.DatabaseError: the database cannot be reached. What is left is looked at again.
        Held: nothing may be started now (`processes.guard`).
    """
    judge, ended = Judge(now), 0
    for some in chunks(list(keys), ROWS_PER_UPDATE):
        guard.check(broker, may_claim=True)
        found = read(blocked().filter(pk__in=some).order_by("pk"), now, _waiting)
        judge.load(row.scheduler_id for row in found if row.scheduler_id is not None)
        ended += _act(
            [(row, verdict) for row in found if (verdict := _verdict(judge, row, now)) is not None], broker, now
        )
    return ended


def _waiting(rows: Any) -> list[Waiting]:
    return [Waiting(*columns) for columns in rows.values_list(*Waiting._fields)]


def _verdict(judge: Judge, row: Waiting, now: datetime) -> Verdict | None:
    """What to do with an occurrence; None if it has been ended, because that cannot be decided."""
    try:
        with savepoint():
            own = judge.schedule(row.scheduler_id) if row.scheduler_id is not None else None
            if own is not None:
                return judge.verdict(own, row)
            _cancel(row.pk, now)
    except PredecessorUnusable as error:
        if row.scheduler_id is not None:
            set_aside(row.scheduler_id, error, now)
        handle_each([row.pk], partial(_fail, UNUSABLE, str(error), now), now)
    except Exception as error:
        if is_away(error):
            raise
        fail_row(row.pk, error, now)
    return None


def _act(judged: Sequence[tuple[Waiting, Verdict]], broker: Broker, now: datetime) -> int:
    released: dict[str, list[int]] = defaultdict(list)
    waits: dict[tuple[datetime, datetime, str, int | None], list[int]] = defaultdict(list)
    ended = 0
    for row, verdict in judged:
        decided = verdict.decided
        if isinstance(decided, Wait):
            waits[row.wake_at, decided.look_at, verdict.sentence, verdict.waits_for].append(row.pk)
        elif isinstance(decided, Start) or decided.late is Late.RUN:
            released[verdict.sentence].append(row.pk)
        else:
            end = partial(_skip if decided.late is Late.SKIP else _fail_late, verdict.sentence, now)
            ended += handle_each([row.pk], end, now)

    def refused(pk: int, error: Exception) -> None:
        fail_row(pk, error, now)

    for (seen, look_at, sentence, waits_for), keys in waits.items():
        columns = {"wake_at": look_at, "reason": clean(sentence, REASON_CHARS), "waits_for": waits_for}
        # A row that was woken since it was read stays woken: the success may be younger than what was read.
        each_or_all(keys, partial(_wait_on, blocked().filter(wake_at__lte=seen), columns), refused)
    for sentence, keys in released.items():
        each_or_all(keys, partial(_release, sentence, broker, now), refused)
        ended += len(keys)
    if released and not broker.embedded:
        keys = [pk for some in released.values() for pk in some]
        publish_soon(read_rows(SchedulerExecution.objects.in_state(State.CLAIMED).filter(pk__in=keys), now), broker)
    return ended


def _wait_on(rows: ExecutionQuerySet, columns: dict[str, Any], keys: Sequence[int]) -> None:
    rows.filter(pk__in=list(keys)).update(**columns)


def _release(reason: str, broker: Broker, now: datetime, keys: Sequence[int]) -> None:
    columns = initial_columns(now, broker.embedded)
    to = State(columns.pop("state"))
    columns |= {"reason": clean(reason, REASON_CHARS), "waits_for": None}
    blocked().filter(pk__in=list(keys)).move([State.BLOCKED], to, **columns)


def _skip(reason: str, now: datetime, pk: int) -> None:
    columns = {
        "wake_at": None,
        "waits_for": None,
        "start_by": None,
        "finished_at": now,
        "missed": 1,
        "reason": clean(reason, REASON_CHARS),
    }
    if blocked().filter(pk=pk).move([State.BLOCKED], State.SKIPPED, **columns):
        note_skipped([SchedulerExecution.objects.get(pk=pk)])
        overlap.look_soon([pk], now)
        log.warning("%s", reason, extra={"execution": pk})


def _fail_late(reason: str, now: datetime, pk: int) -> None:
    _fail(LATE, reason, now, pk)


def _fail(error_class: str, message: str, now: datetime, pk: int) -> None:
    said = clean(message, REASON_CHARS)
    # It counts as parked: no attempt has failed, so there is no message for the failed queue.
    columns = {
        "wake_at": None,
        "waits_for": None,
        "start_by": None,
        "finished_at": now,
        "published_at": now,
        "reason": REASONS[error_class],
    }
    columns |= {"error_class": error_class, "error_message": said, "fingerprint": fingerprint(error_class, said)}
    with transaction.atomic():
        # No attempt will tell a producer of this failure, so the pause is part of this transaction. The schedule is
        # locked first, as by each process that locks both rows.
        schedules = _pauses_after_failures(pk)
        if not blocked().filter(pk=pk).move([State.BLOCKED], State.FAILED, **columns):
            return
        row = SchedulerExecution.objects.get(pk=pk)
        overlap.look_soon([pk], now)
        pause_failing(schedules, now)
        transaction.on_commit(lambda: report_row(row))


def _pauses_after_failures(pk: int) -> list[int]:
    """The schedule of an execution, locked, if failures in a row pause it."""
    own = list(blocked().filter(pk=pk, scheduler__isnull=False).values_list("scheduler", flat=True))
    return list(
        locking(Scheduler.objects.filter(pk__in=own, pause_after_failures__isnull=False)).values_list("pk", flat=True)
    )


def _cancel(pk: int, now: datetime) -> None:
    columns = {"wake_at": None, "waits_for": None, "finished_at": now, "reason": CANCELLED_BY.format(by=DELETED)}
    blocked().filter(pk=pk).move([State.BLOCKED], State.CANCELLED, **columns)
