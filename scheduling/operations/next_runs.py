"""The next runs of a schedule."""

from __future__ import annotations

from datetime import UTC, datetime

from django.utils import timezone as clock

from scheduling.core.cron import CronError, ZoneError, next_after
from scheduling.core.expected import Expected, Fate, expected, first_expected
from scheduling.core.text import visible_text
from scheduling.execution.rule_pauses import runs_left
from scheduling.models import Scheduler
from scheduling.models.own_timing import has_own_timing
from scheduling.models.timetable import timetable_of
from scheduling.operations.catch_up import plan_of
from scheduling.operations.next_run_shapes import NextRunsShape, OccurrenceShape
from scheduling.operations.schedule_words import in_words

MOST = 100
FEW = 10


def next_runs(row: Scheduler, count: int = FEW, now: datetime | None = None) -> list[datetime]:
    """The next occurrences in UTC, at most `count`, at most `MOST`, and no more than the schedule's number of runs.

    A paused schedule would have them.

    Raises:
        CronError, ZoneError: the schedule or its zone is invalid. The message is a sentence for the user.
    """
    now = now or clock.now()
    if has_own_timing(row):
        return [one.starts_at for one in next_expected(row, count, now) if one.starts_at is not None]
    if row.date_time is not None:
        return [row.date_time] if row.date_time > now else []
    timetable, found = timetable_of(row.schedule), list[datetime]()
    for _number in range(_most(row, count, now)):
        try:
            found.append(next_after(timetable, row.zone_name, found[-1] if found else now))
        except CronError:
            break  # the schedule has no further occurrence
    return found


def next_expected(row: Scheduler, count: int = FEW, now: datetime | None = None) -> list[Expected]:
    """What becomes of the next occurrences of a schedule with rules of its own, up to the `count`-th that starts.

    Of those that are due already, only the ones are told that a producer would still start.

    Raises:
        CronError, ZoneError: as `next_runs`.
    """
    now, most = now or clock.now(), _most(row, count)
    own = row.assigned()
    if (due := plan_of(row, now)) is not None:
        late = [Expected(one.instant, one.instant, 1, Fate.RUNS, one.assigned or one.instant) for one in due.runs]
        found, first = late[:most], due.next_nominal_at or due.next_run_at
    else:
        planned = row.next_nominal_at or row.next_run_at if row.status else None
        found, first = [], first_expected(own, planned, now)
    starts = len(found)
    for one in expected(own, first) if starts < most else ():
        found.append(one)
        starts += one.starts_at is not None
        if starts >= most:
            break
    return found


def _most(row: Scheduler, count: int, later_than: datetime | None = None) -> int:
    """How many runs are told.

    Args:
        later_than: only runs after this instant are told, so those that are due until then use up the number of runs.
    """
    if (left := runs_left(row)) is None:
        return min(count, MOST)
    due = plan_of(row, later_than) if later_than is not None else None
    return min(count, MOST, left - (0 if due is None else len(due.runs)))


def next_runs_shape(row: Scheduler, count: int = FEW, now: datetime | None = None) -> NextRunsShape:
    """The next runs, the schedule in words, and a sentence if they cannot be told."""
    try:
        runs, words, problem = next_runs(row, count, now), in_words(row), ""
        rules = next_expected(row, count, now) if has_own_timing(row) else []
    except (CronError, ZoneError) as error:
        runs, words, problem, rules = [], "", visible_text(error, 500), []
    return NextRunsShape(
        schedule_id=row.pk, words=words, timezone=row.zone_name, is_active=row.status,
        runs=[run.astimezone(UTC) for run in runs],
        occurrences=[
            OccurrenceShape(
                at=one.first, last=one.last, count=one.count, fate=one.fate.value, starts_at=one.starts_at,
                reason=visible_text(one.why, 300),
            )
            for one in rules
        ],
        problem=problem,
    )  # fmt: skip
